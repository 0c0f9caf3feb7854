#pragma once

#include <functional>

namespace baton::ports {

// Runs work that blocks, such as loading a model, off the workers and at low priority. A job is run
// once, or dropped when the process stops first.
class JobRunner {
 public:
  virtual ~JobRunner() = default;
  virtual void run(
      std::move_only_function<void()> job) = 0;  // any thread; queued without limit of time
};

}  // namespace baton::ports
