#pragma once

#include <condition_variable>
#include <mutex>

#include "base/event_queue.h"
#include "ports/clock.h"
#include "ports/executor.h"

namespace baton::adapters {

// The controller's executor and timers over the queue that simulated runs use, in the same order:
// by time, timers before what was posted for the same instant, then as they came. Starts no thread:
// whoever owns the controller's thread calls run() on it.
class ControlLoop final : public ports::Executor, public ports::Timers {
 public:
  explicit ControlLoop(const ports::Clock& clock) : clock_(clock) {}
  ControlLoop(const ControlLoop&) = delete;
  ControlLoop& operator=(const ControlLoop&) = delete;

  // Until stop(); on one thread.
  void run();
  // Any thread, also before run(). What has not run by then is dropped with the loop.
  void stop();

  void post(std::move_only_function<void()> task) override;
  ports::TimerId arm(Instant when, std::move_only_function<void()> action) override;
  void cancel(ports::TimerId id) override;

 private:
  const ports::Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  EventQueue events_;
  bool stop_ = false;
};

}  // namespace baton::adapters
