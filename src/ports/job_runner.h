#pragma once

#include <functional>

#include "base/function_ref.h"

namespace baton::ports {

// Asks a job to end early: requested once, never withdrawn.
class Cancellation {
 public:
  virtual ~Cancellation() = default;
  [[nodiscard]] virtual bool requested() const = 0;  // any thread
  // Runs `work` on the calling thread. A request that comes meanwhile calls `interrupt` on another
  // thread, which may happen again until `work` has returned, and never after it.
  virtual void run(FunctionRef<void()> work, FunctionRef<void()> interrupt) = 0;
};

// Runs work that blocks or takes long, such as loading a model or reading megabytes of JSON, off
// the workers and at lower priority. A job is run once, or dropped when the process stops first.
class JobRunner {
 public:
  virtual ~JobRunner() = default;
  using Job = std::move_only_function<void(Cancellation& cancellation)>;
  virtual void run(Job job) = 0;  // any thread; queued without limit of time
};

}  // namespace baton::ports
