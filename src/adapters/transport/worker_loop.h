#pragma once

#include <memory>

#include "ports/executor.h"

namespace baton::adapters::transport {

// One worker's event loop. Starts no thread: whoever owns the worker's thread calls run() on it. A
// task or timer runs to completion before the next.
class WorkerLoop final : public ports::Executor, public ports::Timers {
 public:
  WorkerLoop();
  ~WorkerLoop() override;
  WorkerLoop(const WorkerLoop&) = delete;
  WorkerLoop& operator=(const WorkerLoop&) = delete;

  // Until stop(); on one thread.
  void run();
  // Any thread. Tasks that have not run by then are dropped with the loop.
  void stop();

  void post(std::move_only_function<void()> task) override;
  ports::TimerId arm(Instant when, std::move_only_function<void()> action) override;
  void cancel(ports::TimerId id) override;

  struct Impl;  // loop_impl.h, for this room and the front ends' connections
  [[nodiscard]] Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::adapters::transport
