#include "domain/latency_curve.h"

#include <algorithm>

namespace baton {
namespace {

// Of what is predicted: sums with it fit.
constexpr Duration kLongestRun = Duration::s(365 * 86'400);

}  // namespace

bool is_curve(std::span<const CurvePoint> points) {
  if (points.empty() || points.size() > kMostCurvePoints) return false;
  CurvePoint before{0, Duration::ns(1), 0};
  for (const CurvePoint& point : points) {
    if (point.batch_size <= before.batch_size || point.duration < before.duration) return false;
    before = point;
  }
  return points.back().duration <= Duration::s(86'400);
}

Duration LatencyCurve::predict(uint64_t batch_size) const {
  if (points_.empty()) return {};
  if (points_.size() == 1 || batch_size <= points_.front().batch_size) {
    if (batch_size <= points_.front().batch_size) return points_.front().duration;
    const Duration one = points_.front().duration;
    const uint64_t scale = batch_size / points_.front().batch_size;
    if (scale > static_cast<uint64_t>(kLongestRun.ns() / one.ns())) return kLongestRun;
    return one * static_cast<int64_t>(scale);  // one point only: assume that nothing is gained
  }
  auto upper = std::ranges::lower_bound(points_, batch_size, {}, [](const CurvePoint& point) {
    return static_cast<uint64_t>(point.batch_size);
  });
  if (upper == points_.end()) --upper;
  const CurvePoint& high = *upper;
  const CurvePoint& low = *(upper - 1);
  const double slope = static_cast<double>((high.duration - low.duration).ns()) /
                       static_cast<double>(high.batch_size - low.batch_size);
  const double beyond = static_cast<double>(batch_size) - static_cast<double>(low.batch_size);
  const double more = std::min(slope * beyond, static_cast<double>(kLongestRun.ns()));
  return low.duration + Duration::ns(static_cast<int64_t>(more));
}

}  // namespace baton
