#pragma once
// Internal to this room: the Asio side of a WorkerLoop.

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "adapters/http/steady_clock.h"
#include "adapters/http/timer_wheel.h"
#include "adapters/http/worker_loop.h"

namespace baton::adapters::http {

struct WorkerLoop::Impl {
  Impl() : wheel(clock.now()), work(io.get_executor()), wake(io) {}

  void rearm();
  void on_wake();

  SteadyClock clock;
  TimerWheel wheel;
  boost::asio::io_context io{1};  // one thread: a post from it takes no lock
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  // Set for the earliest timer when that becomes earlier, and left alone when timers are cancelled:
  // waking once for nothing is cheaper than a system call for each timer.
  boost::asio::steady_timer wake;
  Instant wake_at = Instant::never();
};

}  // namespace baton::adapters::http
