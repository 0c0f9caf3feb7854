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
  EXPECT_FALSE(refuse_admission({0, 0}, limits, {101, Instant::never()}, now).has_value());
  EXPECT_TRUE(refuse_admission({1, 101}, limits, {1, Instant::never()}, now).has_value());
  const auto late = refuse_admission({}, limits, {0, now}, now);
  EXPECT_EQ(late->refusal.reason, EndReason::kDeadlineQueued);
  EXPECT_EQ(late->limit, DecisionReason::kDeadlinePassed);
}

TEST(RefusalDecision, SaysWhatTheWorkerHeld) {
  const DecisionInput input{.entry = 7,
                            .now = Instant::from_ns(9),
                            .kind = InputKind::kAdmission,
                            .request = RequestId(3),
                            .items = 4,
                            .in_flight = 5,
                            .in_flight_bytes = 6};
  const Decision decision = refusal_decision(input, DecisionReason::kInFlightLimit);
  EXPECT_EQ(decision.sequence, 7U);
  EXPECT_EQ(decision.entry, 7U);
  EXPECT_EQ(decision.now, input.now);
  EXPECT_EQ(decision.kind, DecisionKind::kRefuse);
  EXPECT_EQ(decision.reason, DecisionReason::kInFlightLimit);
  EXPECT_EQ(decision.request, input.request);
  EXPECT_EQ(decision.items, 4U);
  EXPECT_EQ(decision.queued, 5U);
  EXPECT_EQ(decision.detail, 6U);
}

}  // namespace
}  // namespace baton::policy
