#include "policy/admission/admission.h"

#include <gtest/gtest.h>

namespace baton::policy {
namespace {

TEST(RefuseAdmission, HoldsEachLimitAndSaysWhich) {
  const AdmissionLimits limits{.max_in_flight = 2, .max_bytes = 100};
  const Instant now = Instant::from_ns(1000);
  EXPECT_FALSE(refuse_admission({1, 50}, limits, {50, Instant::never()}, now).has_value());
  const auto full = refuse_admission({2, 0}, limits, {}, now);
  ASSERT_TRUE(full.has_value());
  EXPECT_EQ(full->refusal.reason, EndReason::kOverloaded);
  EXPECT_GT(full->refusal.retry_after, Duration());
  EXPECT_EQ(full->limit, DecisionReason::kInFlightLimit);
  const auto large = refuse_admission({1, 50}, limits, {51, Instant::never()}, now);
  ASSERT_TRUE(large.has_value());
  EXPECT_EQ(large->limit, DecisionReason::kInFlightBytesLimit);
  const auto late = refuse_admission({}, limits, {0, now}, now);
  EXPECT_EQ(late->refusal.reason, EndReason::kDeadlineQueued);
  EXPECT_EQ(late->limit, DecisionReason::kDeadlinePassed);
}

}  // namespace
}  // namespace baton::policy
