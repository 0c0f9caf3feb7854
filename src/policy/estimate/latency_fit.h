#pragma once
// Latency curves: from measured samples, refined while serving, and how far warm-up measures.

#include <cstdint>
#include <optional>
#include <span>

#include "domain/latency_curve.h"

namespace baton::policy {

// Below this gain a doubled batch makes its members wait without serving noticeably more of them.
inline constexpr double kPayingGain = 0.05;

struct CurveSample {
  uint32_t batch_size = 0;
  Duration duration;
  uint32_t instance = 0;
};

// The first quartile of each size's samples on each instance, the mean of the instances, made
// monotone: what else runs on the machine only ever adds time, and while models load that is much.
// Samples in any order; sizes > 0.
[[nodiscard]] LatencyCurve fit_curve(std::span<const CurveSample> samples);

// The nearest non-falling sequence in the least-squares sense, points weighted alike: pool adjacent
// violators (Ayer et al., "An empirical distribution function for sampling with incomplete
// information", 1955).
void make_monotone(std::span<CurvePoint> points);

// The largest measured size whose time per item is below that of the paying size before it by
// `gain` or more. 0 for an empty curve.
[[nodiscard]] uint64_t paying_size(const LatencyCurve& curve, double gain = kPayingGain);

struct WarmUpLimits {
  uint32_t max_size = 1;
  Duration budget = Duration::s(10);
  uint64_t max_bytes = 256ULL << 20;  // of one batch's inputs and outputs
  uint32_t runs = 4;                  // that one size costs at least
};
// The size to measure next: 1, 2, 4, … and the maximum, while the time per item falls by
// kPayingGain or more and neither time nor memory runs out. Nothing: enough is known.
[[nodiscard]] std::optional<uint32_t> next_warm_up_size(const LatencyCurve& measured,
                                                        const WarmUpLimits& limits, Duration spent,
                                                        uint64_t bytes_per_item);

// Whether the last size gained less than kPayingGain over the one before it.
[[nodiscard]] bool gain_ended(const LatencyCurve& measured);

// A curve that follows what serving sees. O(points) an observation, without allocation.
class CurveTracker {
 public:
  CurveTracker() = default;
  explicit CurveTracker(LatencyCurve measured);

  // One run of `items` took `duration`. An exponentially weighted mean of the points on both sides
  // (least mean squares on the linear interpolation); one run moves a point by 1/16 of the
  // difference at most, and counts as at most twice and at least half of what was predicted. Points
  // that are not observed drift to their warm-up value times the common slow-down, so that one
  // unlucky measurement does not shut a size out for ever.
  void observe(uint64_t items, Duration duration);
  // Size `items` was measured anew, warm-up having left it out or been disturbed at it. Without
  // effect on an empty curve and when there are kMostCurvePoints other points.
  void remeasure(uint32_t items, Duration duration);
  [[nodiscard]] const LatencyCurve& curve() const { return curve_; }
  [[nodiscard]] uint64_t paying_items() const { return paying_items_; }

 private:
  LatencyCurve curve_;
  LatencyCurve baseline_;  // as warm-up measured it
  double slow_down_ = 1;   // observed over baseline, EWMA
  uint64_t paying_items_ = 0;
};

}  // namespace baton::policy
