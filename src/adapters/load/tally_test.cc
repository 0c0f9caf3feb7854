#include <gtest/gtest.h>

#include "adapters/load/load.h"

namespace baton::adapters::load {
namespace {

LoadPlan plan_of(Duration counted_from) {
  LoadPlan plan;
  plan.sends = constant_arrivals(100, Duration::s(2));
  plan.counted_from = counted_from;
  plan.objective = Duration::ms(20);
  return plan;
}

TEST(Tally, CountsFromTheIntendedTime) {
  const LoadPlan plan = plan_of({});
  Tally tally(plan);
  for (const Duration send : plan.sends) {
    tally.sent(send, send + Duration::ms(5));
    const bool slow = send >= Duration::s(1);
    tally.answered(send, send + Duration::ms(slow ? 30 : 10));
  }
  const LoadResult result = tally.take();
  EXPECT_EQ(result.planned, 200U);
  EXPECT_EQ(result.answered, 200U);
  EXPECT_EQ(result.within_objective, 100U);
  EXPECT_NEAR(result.latency.quantile(0.4).seconds(), 10e-3, 0.2e-3);
  EXPECT_NEAR(result.latency.quantile(0.99).seconds(), 30e-3, 0.5e-3);
  EXPECT_NEAR(result.lateness.quantile(0.5).seconds(), 5e-3, 0.1e-3);
  EXPECT_EQ(result.span, Duration::ms(2020));  // the last was sent at 1.99 s
  EXPECT_NEAR(result.goodput(), 100 / 2.02, 1e-9);
}

TEST(Tally, LeavesTheWarmUpOut) {
  const LoadPlan plan = plan_of(Duration::s(1));
  Tally tally(plan);
  for (const Duration send : plan.sends) {
    if (send < Duration::s(1)) {
      tally.failed(send, "503");
    } else {
      tally.answered(send, send + Duration::ms(1));
    }
  }
  const LoadResult result = tally.take();
  EXPECT_EQ(result.planned, 100U);
  EXPECT_EQ(result.failed(), 0U);
  EXPECT_NEAR(result.achieved_rate(), 100, 2);
}

TEST(Tally, CountsFailuresByStatus) {
  const LoadPlan plan = plan_of({});
  Tally tally(plan);
  tally.failed(Duration(), "overflow");
  tally.failed(Duration(), "503 QUEUE_FULL");
  tally.failed(Duration(), "503 QUEUE_FULL");
  const LoadResult result = tally.take();
  EXPECT_EQ(result.failed(), 3U);
  EXPECT_EQ(result.failures.at("503 QUEUE_FULL"), 2U);
  EXPECT_EQ(result.answered, 0U);
}

}  // namespace
}  // namespace baton::adapters::load
