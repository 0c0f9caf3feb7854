#include "policy/estimate/size_trial.h"

#include <algorithm>

namespace baton::policy {

uint64_t SizeTrial::size(uint64_t paying, uint64_t most, uint64_t queued) const {
  if (paying == 0 || paying >= most || full_batches_ < pause_) return 0;
  const uint64_t larger = std::min(paying * 2, most);
  return queued >= larger ? larger : 0;
}

std::optional<SizeTrial::Measured> SizeTrial::on_run(uint64_t items, Duration duration,
                                                     uint64_t paying) {
  if (paying == 0 || items < paying) return std::nullopt;
  if (full_batches_ < pause_ || items == paying) {
    full_batches_ = std::min(full_batches_ + 1, kLongestPause);
    return std::nullopt;
  }
  if (items != trying_) runs_ = 0;
  trying_ = items;
  durations_[runs_++] = duration;
  if (runs_ < kTrialRuns) return std::nullopt;
  runs_ = 0;
  full_batches_ = 0;
  std::ranges::sort(durations_);
  return Measured{static_cast<uint32_t>(items), durations_[1]};
}

void SizeTrial::settle(bool pays) {
  pause_ = pays ? kShortestPause : std::min(pause_ * 2, kLongestPause);
}

}  // namespace baton::policy
