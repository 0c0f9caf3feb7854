#pragma once
// Virtual time and the loop that moves it.

#include "base/event_queue.h"
#include "ports/clock.h"

namespace baton::sim {

// Events of one instant: timers first, so that a deadline is seen before what else happens then.
inline constexpr int kTimerPriority = 0;
inline constexpr int kRunPriority = 1;
inline constexpr int kArrivalPriority = 2;

class World final : public ports::Clock {
 public:
  [[nodiscard]] Instant now() const override { return now_; }
  [[nodiscard]] WallTime wall() const override { return {.unix_ns = now_.ns()}; }

  EventId at(Instant when, EventQueue::Action action, int priority) {
    return events_.schedule(when < now_ ? now_ : when, std::move(action), priority);
  }
  void cancel(EventId id) { events_.cancel(id); }

  // Runs every event up to `end`, and `after` after each one, until `after` returns false.
  template <class After>
  void run_until(Instant end, After after) {
    while (auto due = events_.pop_due(end)) {
      now_ = due->when;
      due->action();
      ++count_;
      if (!after()) return;
    }
    now_ = end;
  }
  [[nodiscard]] uint64_t count() const { return count_; }

 private:
  EventQueue events_;
  Instant now_ = Instant::from_ns(1'000'000'000);
  uint64_t count_ = 0;
};

}  // namespace baton::sim
