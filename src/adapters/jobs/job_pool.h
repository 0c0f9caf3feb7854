#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "ports/job_runner.h"

namespace baton::adapters::jobs {

class JobPool final : public ports::JobRunner {
 public:
  explicit JobPool(size_t threads);
  ~JobPool() override;
  void run(std::move_only_function<void()> job) override;

 private:
  void work();
  std::mutex mutex_;
  std::condition_variable woken_;
  std::deque<std::move_only_function<void()>> jobs_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace baton::adapters::jobs
