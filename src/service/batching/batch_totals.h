#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "domain/statistics.h"
#include "ports/model_runtime.h"

namespace baton::service {

// What the runs of each batch size took. Sizes above kMostSizes are not told apart and left out:
// they would cost memory for each size that a configuration allows. Allocates at construction only.
class BatchTotals {
 public:
  static constexpr uint64_t kMostSizes = 1024;

  explicit BatchTotals(uint64_t max_items) : sizes_(std::min(max_items, kMostSizes)) {}

  // A run that ended well: inputs gathered from `started`, results told apart until `ended`.
  void add(uint64_t items, Instant started, const ports::RunTimes& times, Instant ended) {
    if (items == 0 || items > sizes_.size()) return;
    BatchSizeTotals& totals = sizes_[items - 1];
    totals.runs += 1;
    totals.input_ns += ns_between(started, times.computed_from);
    totals.infer_ns += ns_between(times.computed_from, times.computed_to);
    totals.output_ns += ns_between(times.computed_to, ended);
  }
  [[nodiscard]] std::vector<BatchSizeTotals> nonzero() const {
    std::vector<BatchSizeTotals> found;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      if (sizes_[i].runs == 0) continue;
      found.push_back(sizes_[i]);
      found.back().items = i + 1;
    }
    return found;
  }

 private:
  static uint64_t ns_between(Instant from, Instant to) {
    return static_cast<uint64_t>(std::max((to - from).ns(), int64_t{0}));
  }

  std::vector<BatchSizeTotals> sizes_;
};

}  // namespace baton::service
