#include "domain/latency_curve.h"

#include <algorithm>

namespace baton {

Duration LatencyCurve::predict(uint64_t batch_size) const {
  if (points_.empty()) return {};
  if (points_.size() == 1 || batch_size <= points_.front().batch_size) {
    if (batch_size <= points_.front().batch_size) return points_.front().duration;
    const auto scale = static_cast<int64_t>(batch_size / points_.front().batch_size);
    return points_.front().duration * scale;  // one point only: assume that nothing is gained
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
  return low.duration + Duration::ns(static_cast<int64_t>(slope * beyond));
}

}  // namespace baton
