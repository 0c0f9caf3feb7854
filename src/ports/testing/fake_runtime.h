#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "ports/model_runtime.h"

namespace baton::ports::testing {

// An instance whose results echo the inputs under the names OUT0, OUT1, … and whose runs a test may
// hold.
class FakeRuntimeInstance final : public RuntimeInstance {
 public:
  Result<BatchResult, RunFailure> run(std::span<const InferRequest* const> members) override {
    std::unique_lock lock(mutex_);
    terminated_ = false;
    ++runs_;
    uint64_t items = 0;
    for (const InferRequest* member : members) items += member->items;
    batch_items_.push_back(items);
    changed_.notify_all();
    changed_.wait(lock, [&] { return !held_ || passes_ > 0 || terminated_; });
    if (held_ && passes_ > 0) --passes_;
    if (terminated_) return fail(RunFailure{.terminated = true, .message = "terminated"});
    if (!failure_.empty()) return fail(RunFailure{.message = failure_});
    lock.unlock();
    BatchResult result;
    for (const InferRequest* member : members) {
      InferResult& one = result.results.emplace_back();
      one.outputs = member->inputs;
      one.storage = member->storage;
      for (size_t i = 0; i < one.outputs.size(); ++i)
        one.outputs[i].name = "OUT" + std::to_string(i);
    }
    return result;
  }
  void terminate() override {
    const std::lock_guard lock(mutex_);
    ++terminations_;
    terminated_ = true;
    changed_.notify_all();
  }

  // Runs that are in progress, and later ones, wait for release().
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  // One held run goes on.
  void release_one() {
    const std::lock_guard lock(mutex_);
    ++passes_;
    changed_.notify_all();
  }
  void fail_with(std::string message) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(message);
  }
  // Blocks until `count` runs have begun.
  void wait_for_runs(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return runs_ >= count; });
  }
  [[nodiscard]] std::vector<uint64_t> batch_items() const {
    const std::lock_guard lock(mutex_);
    return batch_items_;
  }
  [[nodiscard]] size_t terminations() const {
    const std::lock_guard lock(mutex_);
    return terminations_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  size_t runs_ = 0;
  size_t terminations_ = 0;
  size_t passes_ = 0;
  bool held_ = false;
  bool terminated_ = false;
  std::string failure_;
  std::vector<uint64_t> batch_items_;
};

}  // namespace baton::ports::testing
