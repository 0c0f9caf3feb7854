#include "policy/estimate/latency_fit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace baton::policy {
namespace {

// The MLP of 9.5 M parameters on two EPYC threads: 1.3 ms alone, 7 ms for 32.
LatencyCurve mlp_curve() {
  return LatencyCurve({{.batch_size = 1, .duration = Duration::us(1305), .samples = 5},
                       {.batch_size = 2, .duration = Duration::us(1550), .samples = 5},
                       {.batch_size = 4, .duration = Duration::us(1905), .samples = 5},
                       {.batch_size = 8, .duration = Duration::us(2700), .samples = 5},
                       {.batch_size = 16, .duration = Duration::us(4200), .samples = 5},
                       {.batch_size = 32, .duration = Duration::us(6990), .samples = 5}});
}

TEST(FitCurve, TakesTheFirstQuartileOfEachSizeAndNeverFalls) {
  const std::vector<CurveSample> samples = {
      {4, Duration::us(90)}, {1, Duration::us(53)}, {1, Duration::ms(9)},  {1, Duration::us(52)},
      {1, Duration::us(50)}, {1, Duration::ms(8)},  {2, Duration::us(110)}};
  const LatencyCurve curve = fit_curve(samples);
  ASSERT_EQ(curve.points().size(), 3U);
  EXPECT_EQ(curve.points()[0].duration, Duration::us(52));
  EXPECT_EQ(curve.points()[1].duration, Duration::us(100));  // 110 and 90, pooled
  EXPECT_EQ(curve.points()[2].duration, Duration::us(100));
}

TEST(FitCurve, IsTheMeanOfInstances) {
  const std::vector<CurveSample> samples = {
      {1, Duration::us(40), 1}, {1, Duration::us(20), 0}, {1, Duration::us(22), 0}};
  const LatencyCurve curve = fit_curve(samples);
  ASSERT_EQ(curve.points().size(), 1U);
  EXPECT_EQ(curve.points()[0].duration, Duration::us(30));
  EXPECT_EQ(curve.points()[0].samples, 3U);
}

TEST(FitCurve, IsEmptyWithoutSamples) {
  EXPECT_TRUE(fit_curve({}).empty());
}

TEST(MakeMonotone, LeavesNoFallWhateverComesIn) {
  Random random(7);
  for (int round = 0; round < 1000; ++round) {
    std::vector<CurvePoint> points(1 + random.below(12));
    double sum = 0;
    for (CurvePoint& point : points) {
      point.duration = Duration::us(static_cast<int64_t>(random.below(1000)));
      sum += point.duration.seconds();
    }
    make_monotone(points);
    EXPECT_TRUE(std::ranges::is_sorted(points, {}, &CurvePoint::duration));
    for (const CurvePoint& point : points) sum -= point.duration.seconds();
    EXPECT_NEAR(sum, 0, 1e-7) << "pooling keeps the sum";
  }
}

TEST(PayingSize, IsTheLargestThatStillGains) {
  EXPECT_EQ(paying_size(mlp_curve()), 32U);
}

TEST(PayingSize, IsOneForAModelThatGainsNothing) {
  const LatencyCurve flat({{.batch_size = 1, .duration = Duration::us(1000), .samples = 5},
                           {.batch_size = 2, .duration = Duration::us(1990), .samples = 5},
                           {.batch_size = 4, .duration = Duration::us(3960), .samples = 5}});
  EXPECT_EQ(paying_size(flat), 1U);
}

TEST(NextWarmUpSize, DoublesUntilTheGainEnds) {
  const WarmUpLimits limits{.max_size = 64};
  EXPECT_EQ(next_warm_up_size({}, limits, {}, 64), 1U);
  LatencyCurve curve = mlp_curve();
  EXPECT_EQ(next_warm_up_size(curve, limits, Duration::ms(100), 64), 64U);
  curve.points().push_back({.batch_size = 64, .duration = Duration::us(13800), .samples = 5});
  EXPECT_EQ(next_warm_up_size(curve, {.max_size = 512}, {}, 64), std::nullopt);
}

TEST(NextWarmUpSize, EndsAtTheMaximumEvenIfItIsNoPowerOfTwo) {
  const LatencyCurve curve({{.batch_size = 1, .duration = Duration::us(100), .samples = 5},
                            {.batch_size = 2, .duration = Duration::us(110), .samples = 5}});
  EXPECT_EQ(next_warm_up_size(curve, {.max_size = 3}, {}, 64), 3U);
  EXPECT_EQ(next_warm_up_size(curve, {.max_size = 2}, {}, 64), std::nullopt);
}

TEST(NextWarmUpSize, KeepsToTimeAndMemory) {
  const LatencyCurve slow({{.batch_size = 1, .duration = Duration::s(1), .samples = 4}});
  const WarmUpLimits limits{.max_size = 64};
  EXPECT_EQ(next_warm_up_size(slow, limits, Duration::s(1), 64), 2U);
  EXPECT_EQ(next_warm_up_size(slow, limits, Duration::s(4), 64), std::nullopt);
  EXPECT_EQ(next_warm_up_size(mlp_curve(), limits, {}, 5ULL << 20), std::nullopt);
}

TEST(CurveTracker, FollowsADeviceThatBecameSlower) {
  CurveTracker tracker(mlp_curve());
  for (int i = 0; i < 200; ++i) tracker.observe(8, Duration::us(5400));
  EXPECT_NEAR(tracker.curve().predict(8).seconds(), 5.4e-3, 0.1e-3);
  // Sizes that were not seen drift with it.
  EXPECT_GT(tracker.curve().predict(32), Duration::us(9000));
  EXPECT_TRUE(std::ranges::is_sorted(tracker.curve().points(), {}, &CurvePoint::duration));
}

TEST(CurveTracker, LearnsFromSizesBetweenItsPoints) {
  CurveTracker tracker(mlp_curve());
  for (int i = 0; i < 400; ++i) tracker.observe(12, Duration::us(3000));
  EXPECT_NEAR(tracker.curve().predict(12).seconds(), 3.0e-3, 0.1e-3);
}

TEST(CurveTracker, OneOutlierMovesItLittle) {
  CurveTracker tracker(mlp_curve());
  tracker.observe(8, Duration::s(5));
  EXPECT_LT(tracker.curve().predict(8), Duration::us(2700) * 107 / 100);
}

TEST(CurveTracker, TakesUpASizeThatWarmUpDidNotReach) {
  LatencyCurve short_curve = mlp_curve();
  short_curve.points().resize(3);
  CurveTracker tracker(short_curve);
  ASSERT_EQ(tracker.paying_items(), 4U);
  tracker.remeasure(8, Duration::us(2700));
  EXPECT_EQ(tracker.paying_items(), 8U);
  EXPECT_EQ(tracker.curve().predict(8), Duration::us(2700));
  tracker.remeasure(8, Duration::us(3900));
  EXPECT_EQ(tracker.paying_items(), 4U);
  EXPECT_EQ(tracker.curve().points().size(), 4U);
  tracker.remeasure(6, Duration::us(9000));  // above its neighbour: pooled
  EXPECT_TRUE(std::ranges::is_sorted(tracker.curve().points(), {}, &CurvePoint::duration));
}

TEST(CurveTracker, AnUnluckyPointIsTriedAgain) {
  // 32 looked bad while serving and so is no longer run; its warm-up value comes back.
  CurveTracker tracker(mlp_curve());
  for (int i = 0; i < 30; ++i) tracker.observe(32, Duration::us(14000));
  ASSERT_LT(tracker.paying_items(), 32U);
  for (int i = 0; i < 1500; ++i) tracker.observe(16, Duration::us(4200));
  EXPECT_EQ(tracker.paying_items(), 32U);
}

}  // namespace
}  // namespace baton::policy
