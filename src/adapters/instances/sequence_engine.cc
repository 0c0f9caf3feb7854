#include "adapters/instances/sequence_engine.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "adapters/instances/end_text.h"
#include "base/check.h"

namespace baton::adapters {
namespace {

// A timed wait is cut into pieces of this length at most.
constexpr Duration kLongestWait = Duration::s(3600);

std::string left_text(EndReason reason) {
  if (reason != EndReason::kDeadlineQueued) return end_text(reason);
  return "the deadline passed while the request waited for its turn in its sequence";
}

}  // namespace

// A call, and the events of the engine that runs it. Its fields are under the engine's lock but for
// those that do not change.
struct SequenceEngine::Step final : ports::EngineEvents {
  Step(SequenceEngine& engine, uint64_t number, ports::EngineCall its_call,
       ports::EngineEvents& its_events)
      : owner(engine), id(number), call(std::move(its_call)), events(its_events) {}
  void on_end(ports::CallId /*inner*/, ports::EngineEnd end) override {
    owner.on_end(*this, std::move(end));
  }

  SequenceEngine& owner;
  const uint64_t id;
  const ports::EngineCall call;
  ports::EngineEvents& events;
  ports::CallTimings timings;  // while it waits here
  // What the engine below calls it, once its start() has returned.
  std::optional<ports::CallId> inner;
  struct Abort {
    EndReason reason;
    ports::AbortScope scope;
  };
  std::vector<Abort> aborts;  // that came before `inner` was known; at most one of each scope
};

SequenceEngine::SequenceEngine(std::unique_ptr<ports::Sequencer> sequencer,
                               ports::EnginePort& engine, const ports::Clock& clock)
    : engine_(engine), clock_(clock), sequencer_(std::move(sequencer)) {}

ports::StartedCall SequenceEngine::start(ports::EngineCall call, ports::EngineEvents& events) {
  Outbox outbox;
  StepPtr step;
  bool runs = false;
  {
    const std::lock_guard lock(mutex_);
    const Instant now = clock_.now();
    step = std::make_shared<Step>(*this, next_++, std::move(call), events);
    step->timings.queued = now;
    steps_.emplace(step->id, step);
    ports::SequenceTurn turn;
    auto refusal = sequencer_->arrive(step->id, step->call.request, now, turn);
    if (refusal) {
      steps_.erase(step->id);
      outbox.ended.push_back({step, std::move(*refusal)});
    }
    collect(turn, outbox);
    runs = !outbox.begun.empty() && outbox.begun.back().step == step;
  }
  const Begun own = runs ? std::move(outbox.begun.back()) : Begun{};
  if (runs) outbox.begun.pop_back();
  hand_out(outbox);
  return {.id = ports::CallId(step->id), .queue_deadline = runs ? begin(own) : Instant::never()};
}

// Under the lock.
void SequenceEngine::collect(ports::SequenceTurn& turn, Outbox& outbox) {
  for (auto& run : turn.run) {
    outbox.begun.push_back({steps_.at(run.step), std::move(run.request)});
  }
  for (auto& lost : turn.lost) {
    const auto found = steps_.find(lost.step);
    BATON_CHECK(found != steps_.end());
    outbox.ended.push_back({std::move(found->second), std::move(lost.refusal)});
    steps_.erase(found);
  }
  std::ranges::move(turn.freed, std::back_inserter(outbox.freed));
  if (steps_.empty()) drained_.notify_all();
}

// Outside the lock.
void SequenceEngine::hand_out(Outbox& outbox) {
  outbox.freed.clear();
  for (Ended& ended : outbox.ended) tell(ended.step, std::move(ended.refusal));
  for (const Begun& begun : outbox.begun) begin(begun);
}

Instant SequenceEngine::begin(const Begun& begun) {
  const ports::StartedCall started =
      engine_.start({begun.request, begun.step->call.home}, *begun.step);
  std::vector<Step::Abort> aborts;
  {
    const std::lock_guard lock(mutex_);
    begun.step->inner = started.id;
    aborts.swap(begun.step->aborts);
  }
  for (const Step::Abort& abort : aborts) engine_.abort(started.id, abort.reason, abort.scope);
  return started.queue_deadline;
}

void SequenceEngine::tell(const StepPtr& step, Refusal refusal) const {
  ports::EngineEnd end;
  end.reason = refusal.reason;
  end.refusal = std::move(refusal);
  end.timings = step->timings;
  end.timings.ended = clock_.now();
  step->call.home->post([step, end = std::move(end)]() mutable {
    step->events.on_end(ports::CallId(step->id), std::move(end));
  });
}

// On the call's home.
void SequenceEngine::on_end(Step& ended, ports::EngineEnd end) {
  Outbox outbox;
  StepPtr step;
  {
    const std::lock_guard lock(mutex_);
    const auto found = steps_.find(ended.id);
    BATON_CHECK(found != steps_.end());
    step = std::move(found->second);
    steps_.erase(found);
    const bool ok = end.reason == EndReason::kOk;
    ports::SequenceTurn turn;
    auto refusal = sequencer_->ended(step->id, ok ? &end.result : nullptr, clock_.now(), turn);
    if (refusal) {
      end.reason = refusal->reason;
      end.refusal = std::move(*refusal);
      end.result = {};
    }
    collect(turn, outbox);
  }
  // From when it came, not from when its turn did.
  end.timings.queued = step->timings.queued;
  hand_out(outbox);
  step->events.on_end(ports::CallId(step->id), std::move(end));
}

void SequenceEngine::abort(ports::CallId id, EndReason reason, ports::AbortScope scope) {
  Outbox outbox;
  std::optional<ports::CallId> inner;
  {
    const std::lock_guard lock(mutex_);
    const auto found = steps_.find(id.value());
    if (found == steps_.end()) return;
    const StepPtr step = found->second;
    ports::SequenceTurn turn;
    if (sequencer_->leave(step->id, clock_.now(), turn)) {
      steps_.erase(step->id);
      outbox.ended.push_back({step, {reason, left_text(reason), {}}});
      collect(turn, outbox);
    } else if (step->inner) {
      inner = step->inner;
    } else {
      const auto same = [&](const Step::Abort& abort) { return abort.scope == scope; };
      if (std::ranges::none_of(step->aborts, same)) step->aborts.push_back({reason, scope});
    }
  }
  if (inner) engine_.abort(*inner, reason, scope);
  hand_out(outbox);
}

// Takes a turn under the lock and carries it out.
template <class Take>
void SequenceEngine::take_turn(Take take) {
  Outbox outbox;
  {
    const std::lock_guard lock(mutex_);
    ports::SequenceTurn turn;
    take(turn);
    collect(turn, outbox);
  }
  hand_out(outbox);
}

Instant SequenceEngine::end_idle() {
  Instant next;
  take_turn([&](ports::SequenceTurn& turn) { next = sequencer_->expire(clock_.now(), turn); });
  return next;
}

void SequenceEngine::expect_no_more() {
  take_turn([&](ports::SequenceTurn& turn) { sequencer_->let_all_begin(clock_.now(), turn); });
}

void SequenceEngine::set_instances(uint32_t count) {
  take_turn(
      [&](ports::SequenceTurn& turn) { sequencer_->set_instances(count, clock_.now(), turn); });
}

void SequenceEngine::drain(Instant deadline) {
  take_turn([&](ports::SequenceTurn& turn) { sequencer_->stop_accepting(turn); });
  {
    std::unique_lock lock(mutex_);
    for (Instant now = clock_.now(); !steps_.empty() && now < deadline; now = clock_.now()) {
      const Duration left = std::min(deadline - now, kLongestWait);
      drained_.wait_for(lock, std::chrono::nanoseconds(left.ns()));
    }
  }
  take_turn([&](ports::SequenceTurn& turn) { sequencer_->close(turn); });
}

ports::EngineStats SequenceEngine::stats() const {
  ports::EngineStats stats = engine_.stats();
  const std::lock_guard lock(mutex_);
  stats.queued_calls = steps_.size() - std::min<uint64_t>(stats.running_calls, steps_.size());
  stats.sequences = sequencer_->stats();
  return stats;
}

std::vector<BatchSizeTotals> SequenceEngine::batch_totals() const {
  return engine_.batch_totals();
}

LatencyCurve SequenceEngine::curve() const {
  return engine_.curve();
}

}  // namespace baton::adapters
