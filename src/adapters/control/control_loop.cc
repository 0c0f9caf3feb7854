#include "adapters/control/control_loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace baton::adapters {
namespace {

// As in sim/world.h: of one instant, a deadline is seen before what else happens then.
constexpr int kTimerPriority = 0;
constexpr int kTaskPriority = 1;
// A wait is cut into pieces of this length at most.
constexpr Duration kLongestWait = Duration::s(3600);

}  // namespace

void ControlLoop::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const Instant now = clock_.now();
    if (auto due = events_.pop_due(now)) {
      lock.unlock();
      due->action();
      due.reset();  // what it held goes outside the lock: it may come back here
      lock.lock();
      continue;
    }
    const auto next = events_.next_time();
    const Duration wait = next ? std::min(*next - now, kLongestWait) : kLongestWait;
    changed_.wait_for(lock, std::chrono::nanoseconds(wait.ns()));
  }
}

void ControlLoop::stop() {
  const std::lock_guard lock(mutex_);
  stop_ = true;
  changed_.notify_one();
}

void ControlLoop::post(std::move_only_function<void()> task) {
  const std::lock_guard lock(mutex_);
  events_.schedule(clock_.now(), std::move(task), kTaskPriority);
  changed_.notify_one();
}

ports::TimerId ControlLoop::arm(Instant when, std::move_only_function<void()> action) {
  const std::lock_guard lock(mutex_);
  return events_.schedule(when, std::move(action), kTimerPriority).value();
}

void ControlLoop::cancel(ports::TimerId id) {
  const std::lock_guard lock(mutex_);
  events_.cancel(EventId(id));
}

}  // namespace baton::adapters
