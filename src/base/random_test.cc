#include "base/random.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(Random, SameSeedSameSequenceOtherStreamAnother) {
  Random a(7), b(7), c(7, 1);
  EXPECT_EQ(a.next(), b.next());
  EXPECT_NE(a.next(), c.next());
}

TEST(Random, MeansAreWhatTheDistributionsSay) {
  Random random(1);
  double exponential = 0, gamma = 0, normal = 0;
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) {
    exponential += random.exponential(3);
    gamma += random.gamma(0.5, 4);
    normal += random.normal();
  }
  EXPECT_NEAR(exponential / kDraws, 3, 0.05);
  EXPECT_NEAR(gamma / kDraws, 2, 0.05);
  EXPECT_NEAR(normal / kDraws, 0, 0.02);
}

TEST(Random, BelowStaysBelow) {
  Random random(2);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.below(7), 7U);
}

}  // namespace
}  // namespace baton
