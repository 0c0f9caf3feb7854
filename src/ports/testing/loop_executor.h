#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "ports/executor.h"

namespace baton::ports::testing {

// A loop that the test turns: tasks run inside run_until() on the calling thread.
class LoopExecutor final : public Executor {
 public:
  void post(std::move_only_function<void()> task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    posted_.notify_all();
  }

  // Runs tasks, and waits for more, until `done` holds.
  void run_until(const std::function<bool()>& done) {
    while (!done()) {
      std::unique_lock lock(mutex_);
      posted_.wait(lock, [&] { return !tasks_.empty(); });
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }
  // Runs what is there.
  void run_ready() {
    while (true) {
      std::unique_lock lock(mutex_);
      if (tasks_.empty()) return;
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::move_only_function<void()>> tasks_;
};

}  // namespace baton::ports::testing
