#pragma once
// Counters and histograms with one writing thread each and readers on any: relaxed atomics, no
// lock, no read-modify-write.

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/time.h"

namespace baton {

class Counter {
 public:
  void add(uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// The newest of values that only grow.
class HighWater {
 public:
  void raise(int64_t value) {
    if (value > value_.load(std::memory_order_relaxed)) {
      value_.store(value, std::memory_order_relaxed);
    }
  }
  [[nodiscard]] int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

// Upper bounds of latency buckets, in nanoseconds; values above the last fall into +Inf.
inline constexpr std::array<int64_t, 19> kLatencyBoundsNs = {
    50'000,        100'000,        250'000,        500'000,       1'000'000,
    2'500'000,     5'000'000,      10'000'000,     25'000'000,    50'000'000,
    100'000'000,   250'000'000,    500'000'000,    1'000'000'000, 2'500'000'000,
    5'000'000'000, 10'000'000'000, 30'000'000'000, 60'000'000'000};

class LatencyHistogram {
 public:
  void record(Duration duration) {
    size_t bucket = 0;
    while (bucket < kLatencyBoundsNs.size() && duration.ns() > kLatencyBoundsNs[bucket]) ++bucket;
    buckets_[bucket].add();
    sum_ns_.add(static_cast<uint64_t>(duration.ns() > 0 ? duration.ns() : 0));
  }
  // Adds this histogram to the totals; `buckets` has one place more than there are bounds.
  void merge_into(std::span<uint64_t> buckets, uint64_t& sum_ns) const {
    for (size_t i = 0; i < buckets_.size(); ++i) buckets[i] += buckets_[i].value();
    sum_ns += sum_ns_.value();
  }
  static constexpr size_t kBuckets = kLatencyBoundsNs.size() + 1;

 private:
  std::array<Counter, kBuckets> buckets_;
  Counter sum_ns_;
};

}  // namespace baton
