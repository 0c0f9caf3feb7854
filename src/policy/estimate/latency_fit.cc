#include "policy/estimate/latency_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "base/check.h"

namespace baton::policy {
namespace {

constexpr double kObservationWeight = 1.0 / 16;
constexpr double kDriftWeight = 1.0 / 256;

Duration scaled(Duration duration, double factor) {
  return Duration::ns(std::llround(static_cast<double>(duration.ns()) * factor));
}

double per_item(const CurvePoint& point) {
  return static_cast<double>(point.duration.ns()) / static_cast<double>(point.batch_size);
}

}  // namespace

LatencyCurve fit_curve(std::span<const CurveSample> samples) {
  const auto key = [](const CurveSample& sample) {
    return std::tuple(sample.batch_size, sample.instance, sample.duration);
  };
  std::vector<CurveSample> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted, {}, key);
  std::vector<CurvePoint> points;
  int64_t instances = 0;  // of the last point
  for (size_t begin = 0; begin < sorted.size();) {
    const CurveSample& first = sorted[begin];
    size_t end = begin;
    while (end < sorted.size() && sorted[end].batch_size == first.batch_size &&
           sorted[end].instance == first.instance) {
      ++end;
    }
    const Duration quartile = sorted[begin + (end - begin) / 4].duration;
    if (points.empty() || points.back().batch_size != first.batch_size) {
      points.push_back({.batch_size = first.batch_size, .duration = {}, .samples = 0});
      instances = 0;
    }
    CurvePoint& point = points.back();
    point.duration = (point.duration * instances + quartile) / (instances + 1);
    point.samples += end - begin;
    ++instances;
    begin = end;
  }
  make_monotone(points);
  return LatencyCurve(std::move(points));
}

void make_monotone(std::span<CurvePoint> points) {
  if (std::ranges::is_sorted(points, {}, &CurvePoint::duration)) return;
  struct Block {
    double sum = 0;
    size_t count = 0;
    [[nodiscard]] double mean() const { return sum / static_cast<double>(count); }
  };
  BATON_CHECK(points.size() <= kMostCurvePoints);
  std::array<Block, kMostCurvePoints> blocks;
  size_t used = 0;
  for (const CurvePoint& point : points) {
    blocks[used++] = {static_cast<double>(point.duration.ns()), 1};
    while (used > 1 && blocks[used - 2].mean() > blocks[used - 1].mean()) {
      blocks[used - 2].sum += blocks[used - 1].sum;
      blocks[used - 2].count += blocks[used - 1].count;
      --used;
    }
  }
  size_t point = 0;
  for (size_t block = 0; block < used; ++block) {
    const Duration mean = Duration::ns(std::llround(blocks[block].mean()));
    for (size_t i = 0; i < blocks[block].count; ++i) points[point++].duration = mean;
  }
}

uint64_t paying_size(const LatencyCurve& curve, double gain) {
  if (curve.empty()) return 0;
  const CurvePoint* paying = &curve.points().front();
  for (const CurvePoint& point : curve.points()) {
    if (per_item(point) <= per_item(*paying) * (1 - gain)) paying = &point;
  }
  return paying->batch_size;
}

bool gain_ended(const LatencyCurve& measured) {
  const std::vector<CurvePoint>& points = measured.points();
  return points.size() > 1 &&
         per_item(points.back()) > per_item(points[points.size() - 2]) * (1 - kPayingGain);
}

std::optional<uint32_t> next_warm_up_size(const LatencyCurve& measured, const WarmUpLimits& limits,
                                          Duration spent, uint64_t bytes_per_item) {
  if (measured.empty()) return 1;
  const std::vector<CurvePoint>& points = measured.points();
  const CurvePoint& last = points.back();
  if (last.batch_size >= limits.max_size || points.size() >= kMostCurvePoints) return std::nullopt;
  if (gain_ended(measured)) return std::nullopt;
  const uint64_t size = std::min<uint64_t>(uint64_t{last.batch_size} * 2, limits.max_size);
  // A batch of twice the size takes twice the time at most.
  const Duration cost = last.duration * 2 * static_cast<int64_t>(limits.runs);
  if (spent + cost > limits.budget) return std::nullopt;
  if (bytes_per_item > 0 && size > limits.max_bytes / bytes_per_item) return std::nullopt;
  return static_cast<uint32_t>(size);
}

CurveTracker::CurveTracker(LatencyCurve measured)
    : curve_(measured), baseline_(std::move(measured)), paying_items_(paying_size(curve_)) {}

void CurveTracker::observe(uint64_t items, Duration duration) {
  const Duration predicted = curve_.predict(items);
  if (predicted <= Duration() || duration <= Duration()) return;
  duration = std::clamp(duration, predicted / 2, predicted * 2);
  const double off = static_cast<double>((duration - predicted).ns());
  const std::span<CurvePoint> points = curve_.points();

  const auto upper = std::ranges::lower_bound(points, items, {}, &CurvePoint::batch_size);
  const size_t high = std::min(static_cast<size_t>(upper - points.begin()), points.size() - 1);
  const bool between = high > 0 && items < points[high].batch_size;
  const size_t low = between ? high - 1 : high;
  double share = 1;  // of the upper point
  if (between) {
    share = static_cast<double>(items - points[low].batch_size) /
            static_cast<double>(points[high].batch_size - points[low].batch_size);
  }
  const double ratio = static_cast<double>(duration.ns()) /
                       static_cast<double>(std::max<int64_t>(baseline_.predict(items).ns(), 1));
  slow_down_ += kObservationWeight * (ratio - slow_down_);
  for (size_t i = 0; i < points.size(); ++i) {
    CurvePoint& point = points[i];
    if (i == high || i == low) {
      const double weight = i == high ? share : 1 - share;
      point.duration += Duration::ns(std::llround(kObservationWeight * weight * off));
      ++point.samples;
    } else {
      const Duration rest = scaled(baseline_.points()[i].duration, slow_down_) - point.duration;
      point.duration += scaled(rest, kDriftWeight);
    }
  }
  make_monotone(points);
  paying_items_ = paying_size(curve_);
}

void CurveTracker::remeasure(uint32_t items, Duration duration) {
  if (curve_.empty() || items == 0 || duration <= Duration()) return;
  const auto put = [items](std::vector<CurvePoint>& points, Duration value) {
    auto at = std::ranges::lower_bound(points, items, {}, &CurvePoint::batch_size);
    if (at == points.end() || at->batch_size != items) {
      if (points.size() >= kMostCurvePoints) return;
      at = points.insert(at, {items, value, 0});
    }
    at->duration = value;
    ++at->samples;
    make_monotone(points);
  };
  put(curve_.points(), duration);
  put(baseline_.points(), scaled(duration, 1 / std::max(slow_down_, 1e-3)));
  paying_items_ = paying_size(curve_);
}

}  // namespace baton::policy
