#pragma once

#include <deque>
#include <utility>

#include "ports/job_runner.h"

namespace baton::ports::testing {

// Jobs that run when the test says so, on its thread; nobody asks them to end.
class ManualJobs final : public JobRunner {
 public:
  void run(Job job) override { waiting_.push_back(std::move(job)); }
  [[nodiscard]] size_t waiting() const { return waiting_.size(); }
  void run_all() {
    Never never;
    while (!waiting_.empty()) {
      Job job = std::move(waiting_.front());
      waiting_.pop_front();
      job(never);
    }
  }

 private:
  class Never final : public Cancellation {
   public:
    [[nodiscard]] bool requested() const override { return false; }
    void run(FunctionRef<void()> work, FunctionRef<void()>) override { work(); }
  };
  std::deque<Job> waiting_;
};

}  // namespace baton::ports::testing
