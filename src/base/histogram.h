#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "base/time.h"

namespace baton {

// Durations in buckets 1.6 % wide: 64 to each power of two nanoseconds. A value, 16 KiB.
class Histogram {
 public:
  void add(Duration value) {
    const uint64_t ns = value.ns() < 0 ? 0 : static_cast<uint64_t>(value.ns());
    ++counts_[index(ns)];
    ++count_;
    sum_ns_ += static_cast<double>(ns);
    max_ns_ = std::max(max_ns_, ns);
  }
  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] Duration mean() const {
    return count_ == 0 ? Duration()
                       : Duration::ns(static_cast<int64_t>(sum_ns_ / static_cast<double>(count_)));
  }
  [[nodiscard]] Duration max() const { return Duration::ns(static_cast<int64_t>(max_ns_)); }
  // How many values lie in buckets that end at or below `limit`.
  [[nodiscard]] uint64_t count_within(Duration limit) const {
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size() && static_cast<int64_t>(upper(i)) <= limit.ns(); ++i) {
      seen += counts_[i];
    }
    return seen;
  }
  // The upper end of the bucket that holds the quantile, the maximum at most; zero when empty.
  [[nodiscard]] Duration quantile(double q) const {
    const auto rank = static_cast<uint64_t>(q * static_cast<double>(count_));
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > rank) return Duration::ns(static_cast<int64_t>(std::min(upper(i), max_ns_)));
    }
    return {};
  }

 private:
  static constexpr int kSubBits = 6;
  static constexpr uint64_t kSub = 1U << kSubBits;
  static size_t index(uint64_t ns) {
    if (ns < kSub) return ns;
    const int shift = static_cast<int>(std::bit_width(ns)) - kSubBits - 1;
    return static_cast<size_t>(shift + 1) * kSub + (ns >> shift) - kSub;
  }
  static uint64_t upper(size_t i) {
    if (i < kSub) return i;
    const auto shift = static_cast<int>(i / kSub) - 1;
    return ((i % kSub + kSub + 1) << shift) - 1;
  }

  std::array<uint64_t, 58 * kSub> counts_{};
  uint64_t count_ = 0;
  double sum_ns_ = 0;
  uint64_t max_ns_ = 0;
};

}  // namespace baton
