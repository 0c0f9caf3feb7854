#include "base/histogram.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(Histogram, QuantilesAreWithinABucketOfTheTruth) {
  Histogram histogram;
  for (int64_t i = 1; i <= 10'000; ++i) histogram.add(Duration::us(i));
  for (double q : {0.5, 0.9, 0.99, 0.999}) {
    const double truth = q * 1e-2;
    EXPECT_GE(histogram.quantile(q).seconds(), truth);
    EXPECT_LE(histogram.quantile(q).seconds(), truth * 1.017);
  }
  EXPECT_EQ(histogram.max(), Duration::ms(10));
  EXPECT_NEAR(histogram.mean().seconds(), 5e-3, 1e-6);
}

TEST(Histogram, CountsWhatLiesWithinALimit) {
  Histogram histogram;
  for (int64_t i = 1; i <= 100; ++i) histogram.add(Duration::ms(i));
  EXPECT_EQ(histogram.count_within(Duration()), 0U);
  EXPECT_NEAR(static_cast<double>(histogram.count_within(Duration::ms(50))), 50, 1);
  EXPECT_EQ(histogram.count_within(Duration::s(1)), 100U);
}

TEST(Histogram, AnEmptyOneHasZeros) {
  const Histogram histogram;
  EXPECT_EQ(histogram.quantile(0.5), Duration());
  EXPECT_EQ(histogram.mean(), Duration());
}

TEST(Histogram, TakesNegativeTimeAsNone) {
  Histogram histogram;
  histogram.add(Duration::ns(-5));
  EXPECT_EQ(histogram.quantile(0.5), Duration());
  EXPECT_EQ(histogram.count(), 1U);
}

}  // namespace
}  // namespace baton
