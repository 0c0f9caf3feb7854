#include "service/fleet/retirement.h"

#include <utility>

namespace baton::service {

void Retirement::retire(std::shared_ptr<ports::EnginePort> engine,
                        std::move_only_function<void(const ports::EngineStats&)> gone) {
  auto leaving = std::make_shared<Leaving>();
  leaving->engine = std::move(engine);
  leaving->gone = std::move(gone);
  leaving_.push_back(leaving);
  directory_.when_followed([this, &controller = ports_.controller, leaving] {
    controller.post([this, leaving] {
      leaving->unfound = true;
      look();
    });
  });
}

void Retirement::look() {
  for (auto it = leaving_.begin(); it != leaving_.end();) {
    const Leaving& leaving = **it;
    const ports::EngineStats stats = leaving.engine->stats();
    const bool drained = leaving.unfound && stats.queued_calls + stats.running_calls == 0;
    if (!drained) {
      ++it;
      continue;
    }
    const std::shared_ptr<Leaving> over = std::move(*it);
    it = leaving_.erase(it);
    free(std::move(*over));
  }
  arm();
}

void Retirement::arm() {
  if (armed_ || leaving_.empty()) return;
  armed_ = true;
  ports_.timers.arm(ports_.clock.now() + kLookAtDraining, [this] {
    armed_ = false;
    look();
  });
}

void Retirement::free(Leaving leaving) {
  auto release = ports_.engines.withdraw(leaving.engine);
  ports_.chores.run([this, leaving = std::move(leaving),
                     release = std::move(release)](ports::Cancellation&) mutable {
    release();
    const ports::EngineStats stats = leaving.engine->stats();
    leaving.engine.reset();
    release = nullptr;
    ports_.runtime.give_back_memory();
    ports_.controller.post([stats, gone = std::move(leaving.gone)]() mutable { gone(stats); });
  });
}

}  // namespace baton::service
