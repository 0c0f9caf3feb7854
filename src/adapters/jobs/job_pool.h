#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "ports/job_runner.h"

namespace baton::adapters::jobs {

struct JobPoolOptions {
  size_t threads = 1;
  const char* name = "baton-job";  // of the threads, at most 15 characters
  int nice = 0;                    // how far they yield to the process's other threads, 0 to 19
};

class JobPool final : public ports::JobRunner {
 public:
  explicit JobPool(const JobPoolOptions& options);
  // Cancels, and waits for the jobs that run.
  ~JobPool() override;
  void run(Job job) override;
  // Drops what is queued and what comes, and asks the jobs that run to end. Any thread; does not
  // wait.
  void cancel();

 private:
  class Stop final : public ports::Cancellation {
   public:
    [[nodiscard]] bool requested() const override;
    void run(FunctionRef<void()> work, FunctionRef<void()> interrupt) override;
    void request();  // again: what runs is interrupted again

   private:
    mutable std::mutex mutex_;
    bool requested_ = false;
    std::vector<const FunctionRef<void()>*> interrupts_;  // of what runs
  };
  void work();

  const JobPoolOptions options_;
  Stop stop_;
  std::mutex mutex_;
  std::condition_variable woken_;
  std::condition_variable idle_;
  std::deque<Job> jobs_;
  size_t running_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace baton::adapters::jobs
