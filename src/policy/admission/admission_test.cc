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
  EXPECT_EQ(full->reason, EndReason::kOverloaded);
  EXPECT_GT(full->retry_after, Duration());
  EXPECT_TRUE(refuse_admission({1, 50}, limits, {51, Instant::never()}, now).has_value());
  EXPECT_EQ(refuse_admission({}, limits, {0, now}, now)->reason, EndReason::kDeadlineQueued);
}

}  // namespace
}  // namespace baton::policy
