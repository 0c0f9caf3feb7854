#pragma once
// Internal to this room: the Asio side of a WorkerLoop.

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <vector>

#include "adapters/transport/steady_clock.h"
#include "adapters/transport/timer_wheel.h"
#include "adapters/transport/worker_loop.h"

namespace baton::adapters::transport {

struct WorkerLoop::Impl {
  Impl() : wheel(clock.now()), work(io.get_executor()), wake(io) {}

  void rearm();
  void on_wake();
  void end_turn();
  [[nodiscard]] bool has_turn() const;

  // Tasks that were posted by what ran in a turn: run at its end, without a wake-up.
  std::vector<std::move_only_function<void()>> tasks;
  size_t next_task = 0;

  SteadyClock clock;
  TimerWheel wheel;
  boost::asio::io_context io{1};  // one thread: a post from it takes no lock
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  // Set for the earliest timer when that becomes earlier, and left alone when timers are cancelled:
  // waking once for nothing is cheaper than a system call for each timer.
  boost::asio::steady_timer wake;
  Instant wake_at = Instant::never();
};

// Everything that happens on a loop happens within one of these.
class Turn {
 public:
  explicit Turn(WorkerLoop& loop) : Turn(loop.impl()) {}
  explicit Turn(WorkerLoop::Impl& loop);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  WorkerLoop::Impl& loop_;
};

}  // namespace baton::adapters::transport
