#pragma once
// The performance model of one deployment on one device kind: execution time by batch size.

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"

namespace baton {

struct CurvePoint {
  uint32_t batch_size = 0;
  Duration duration;  // typical time of one run
  uint64_t samples = 0;
};

inline constexpr size_t kMostCurvePoints = 64;

// Whether points from outside are a curve: 1 to kMostCurvePoints, sizes above 0 that ascend,
// durations above 0 that never fall and are at most a day.
[[nodiscard]] bool is_curve(std::span<const CurvePoint> points);

// Points ascend by batch size; durations never fall as the size grows (kept by policy/estimate).
// Between points the duration is linear, beyond the last it grows at the last segment's slope. A
// value: copied freely, never shared for writing.
class LatencyCurve {
 public:
  LatencyCurve() = default;
  explicit LatencyCurve(std::vector<CurvePoint> points) : points_(std::move(points)) {}

  [[nodiscard]] const std::vector<CurvePoint>& points() const { return points_; }
  [[nodiscard]] bool empty() const { return points_.empty(); }
  // For policy/estimate, which keeps the order.
  [[nodiscard]] std::vector<CurvePoint>& points() { return points_; }
  // Zero for an empty curve.
  [[nodiscard]] Duration predict(uint64_t batch_size) const;

 private:
  std::vector<CurvePoint> points_;
};

}  // namespace baton
