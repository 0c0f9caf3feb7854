#pragma once

#include <utility>

#include "base/event_queue.h"
#include "ports/clock.h"
#include "ports/executor.h"

namespace baton::ports::testing {

// Clock, executor and timers of one worker on virtual time: nothing happens until the test runs the
// loop.
class VirtualLoop final : public Clock, public Executor, public Timers {
 public:
  [[nodiscard]] Instant now() const override { return now_; }
  [[nodiscard]] WallTime wall() const override { return {now_.ns()}; }
  void post(std::move_only_function<void()> task) override {
    queue_.schedule(now_, std::move(task));
  }
  TimerId arm(Instant when, std::move_only_function<void()> action) override {
    return queue_.schedule(when, std::move(action)).value();
  }
  void cancel(TimerId id) override { queue_.cancel(EventId(id)); }

  // Runs everything that is due up to `now + span`, and moves the clock there.
  void run_for(Duration span) {
    const Instant end = now_ + span;
    while (auto due = queue_.pop_due(end)) {
      now_ = due->when > now_ ? due->when : now_;
      due->action();
    }
    now_ = end;
  }
  [[nodiscard]] size_t pending() const { return queue_.size(); }

 private:
  EventQueue queue_;
  Instant now_ = Instant::from_ns(1'000'000'000);
};

}  // namespace baton::ports::testing
