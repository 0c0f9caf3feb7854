#include "adapters/transport/worker_loop.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

#include "adapters/transport/loop_impl.h"

namespace baton::adapters::transport {
namespace {

constexpr size_t kTasksPerTurn = 256;  // then sockets and timers get theirs

thread_local WorkerLoop::Impl* turn_of_this_thread = nullptr;

}  // namespace

Turn::Turn(WorkerLoop::Impl& loop) : loop_(loop) {
  turn_of_this_thread = &loop_;
}

Turn::~Turn() {
  loop_.end_turn();
}

bool WorkerLoop::Impl::has_turn() const {
  return turn_of_this_thread == this;
}

// Runs what the turn has posted, and what that posts. What is left over keeps its place.
void WorkerLoop::Impl::end_turn() {
  for (size_t i = 0; i < kTasksPerTurn && next_task < tasks.size(); ++i) {
    auto task = std::exchange(tasks[next_task++], nullptr);
    task();
  }
  tasks.erase(tasks.begin(), tasks.begin() + static_cast<std::ptrdiff_t>(next_task));
  next_task = 0;
  if (!tasks.empty()) boost::asio::post(io, [this] { const Turn after_others(*this); });
  turn_of_this_thread = nullptr;
}

WorkerLoop::WorkerLoop() : impl_(std::make_unique<Impl>()) {}
WorkerLoop::~WorkerLoop() = default;

void WorkerLoop::run() {
  impl_->io.run();
}

void WorkerLoop::stop() {
  impl_->io.stop();
}

void WorkerLoop::post(std::move_only_function<void()> task) {
  if (impl_->has_turn()) {
    impl_->tasks.push_back(std::move(task));
    return;
  }
  boost::asio::post(impl_->io, [impl = impl_.get(), task = std::move(task)]() mutable {
    const Turn turn(*impl);
    task();
  });
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
  const Turn turn(*this);
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

}  // namespace baton::adapters::transport
