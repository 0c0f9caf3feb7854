#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace baton {

// Bytes that all threads together may hold at a time. Any thread: relaxed atomics. Outlives what it
// has lent.
class ByteBudget {
 public:
  explicit ByteBudget(uint64_t limit) : limit_(limit) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  // Null when the limit would be exceeded; else the bytes come back when the last copy goes.
  [[nodiscard]] std::shared_ptr<const void> lend(uint64_t bytes) {
    const uint64_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
    if (bytes > limit_ || before > limit_ - bytes) {
      used_.fetch_sub(bytes, std::memory_order_relaxed);
      return nullptr;
    }
    return {this, [bytes](ByteBudget* budget) {
              budget->used_.fetch_sub(bytes, std::memory_order_relaxed);
            }};
  }
  [[nodiscard]] uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t limit() const { return limit_; }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

}  // namespace baton
