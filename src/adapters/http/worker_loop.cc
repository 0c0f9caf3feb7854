#include "adapters/http/worker_loop.h"

#include <boost/asio/post.hpp>
#include <chrono>

#include "adapters/http/loop_impl.h"

namespace baton::adapters::http {

WorkerLoop::WorkerLoop() : impl_(std::make_unique<Impl>()) {}
WorkerLoop::~WorkerLoop() = default;

void WorkerLoop::run() {
  impl_->io.run();
}

void WorkerLoop::stop() {
  impl_->io.stop();
}

void WorkerLoop::post(std::move_only_function<void()> task) {
  boost::asio::post(impl_->io, std::move(task));
}

ports::TimerId WorkerLoop::arm(Instant when, std::move_only_function<void()> action) {
  const ports::TimerId id = impl_->wheel.arm(when, std::move(action));
  if (when < impl_->wake_at) impl_->rearm();
  return id;
}

void WorkerLoop::cancel(ports::TimerId id) {
  impl_->wheel.cancel(id);
}

void WorkerLoop::Impl::rearm() {
  const Instant next = wheel.next_wake();
  if (next >= wake_at) return;
  wake_at = next;
  wake.expires_at(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(next.ns())));
  wake.async_wait([this](const boost::system::error_code& error) {
    if (!error) on_wake();
  });
}

void WorkerLoop::Impl::on_wake() {
  constexpr int kActionsMax = 1024;  // then sockets get their turn
  const Instant now = clock.now();
  wake_at = Instant();  // what the actions arm is looked at once, below
  for (int i = 0; i < kActionsMax; ++i) {
    TimerWheel::Action action = wheel.pop_due(now);
    if (!action) break;
    action();
  }
  wake_at = Instant::never();
  rearm();
}

}  // namespace baton::adapters::http
