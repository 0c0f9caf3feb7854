#include "policy/estimate/arrival_rate.h"

#include <algorithm>
#include <cmath>

namespace baton::policy {
namespace {

constexpr int64_t kWhole = 37;  // exp(-37) is below what a double adds to 1

double decay(Duration span, Duration window) {
  if (span <= Duration()) return 1;
  if (span > window * kWhole) return 0;
  return std::exp(-span.seconds() / window.seconds());
}

}  // namespace

void ArrivalRate::on_arrival(uint64_t items, Instant now) {
  if (!any_) {
    any_ = true;
    first_ = now;
    last_ = now;
  }
  count_ = count_ * decay(now - last_, window_) + static_cast<double>(items);
  last_ = now;
}

double ArrivalRate::per_second(Instant now) const {
  if (!any_) return 0;
  // A window observed only in part holds 1 - exp(-observed / window) of its weight. At least a
  // tenth of a window is assumed: two arrivals close together are not yet a rate.
  const Duration observed = std::max(now - first_, window_ / 10);
  const double seen = 1 - decay(observed, window_);
  return count_ * decay(now - last_, window_) / (window_.seconds() * seen);
}

}  // namespace baton::policy
