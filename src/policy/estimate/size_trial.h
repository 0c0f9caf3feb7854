#pragma once
// When serving tries a larger batch than the curve says pays.

#include <array>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "domain/latency_curve.h"

namespace baton::policy {

// Warm-up may have been disturbed, and then a size that would pay is never run. While batches of
// the paying size leave more behind than they take, the doubled size is run kTrialRuns times and
// measured so. A trial that does not pay doubles the number of full batches before the next one.
class SizeTrial {
 public:
  static constexpr size_t kTrialRuns = 4;

  // The size to try with `queued` items waiting, or 0. It is twice the paying size, `most` at most.
  [[nodiscard]] uint64_t size(uint64_t paying, uint64_t most, uint64_t queued) const;

  struct Measured {
    uint32_t items = 0;
    Duration duration;  // the second shortest of the runs
  };
  // A batch of `items` took `duration` while `paying` was the paying size. Returns what a trial
  // that is complete measured.
  std::optional<Measured> on_run(uint64_t items, Duration duration, uint64_t paying);
  // After the curve took up what was measured: whether the size pays.
  void settle(bool pays);

 private:
  static constexpr uint32_t kShortestPause = 16;  // full batches
  static constexpr uint32_t kLongestPause = 4096;

  uint32_t pause_ = kShortestPause;
  uint32_t full_batches_ = 0;  // since the last trial
  uint64_t trying_ = 0;        // the size of the runs below
  size_t runs_ = 0;
  std::array<Duration, kTrialRuns> durations_{};
};

}  // namespace baton::policy
