#pragma once

#include <functional>
#include <utility>

#include "base/time.h"

namespace baton::ports {

using TimerId = uint64_t;  // 0: none

// One loop: a gateway worker, or the simulator's.
class Executor {
 public:
  virtual ~Executor() = default;
  // Runs `task` on the loop, never from within this call. Any thread. Tasks of one thread keep
  // their order.
  virtual void post(std::move_only_function<void()> task) = 0;
};

// Timers of one loop; called on that loop only. A timer fires at or after its time, at most 1 ms
// late on an idle loop.
class Timers {
 public:
  virtual ~Timers() = default;
  virtual TimerId arm(Instant when, std::move_only_function<void()> action) = 0;
  virtual void cancel(TimerId id) = 0;  // of a timer that has fired: no effect
};

}  // namespace baton::ports
