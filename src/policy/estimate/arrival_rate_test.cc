#include "policy/estimate/arrival_rate.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace baton::policy {
namespace {

TEST(ArrivalRate, IsZeroBeforeAnythingArrives) {
  EXPECT_EQ(ArrivalRate().per_second(Instant::from_ns(5)), 0);
}

TEST(ArrivalRate, MeasuresPoissonArrivalsOfSeveralItems) {
  ArrivalRate rate;
  Random random(1);
  Instant now;
  double sum = 0;
  for (int i = 0; i < 20'000; ++i) {
    now = now + Duration::from_seconds(random.exponential(1e-3));
    rate.on_arrival(2, now);
    sum += rate.per_second(now);
  }
  // Seen from an arrival, the count holds that arrival as well: 2 items over the 200 ms window.
  EXPECT_NEAR(sum / 20'000, 2000 + 10, 60);
}

TEST(ArrivalRate, FallsInSilence) {
  ArrivalRate rate;
  Instant now;
  for (int i = 0; i < 1000; ++i) {
    now = now + Duration::ms(1);
    rate.on_arrival(1, now);
  }
  const double busy = rate.per_second(now);
  EXPECT_NEAR(busy, 1000, 50);
  EXPECT_NEAR(rate.per_second(now + Duration::ms(200)), busy * 0.3679, 20);
  EXPECT_LT(rate.per_second(now + Duration::s(5)), 1e-6);
}

TEST(ArrivalRate, ABriefStartIsNoFlood) {
  ArrivalRate rate;
  rate.on_arrival(1, Instant::from_ns(0));
  EXPECT_LT(rate.per_second(Instant::from_ns(1)), 60);
}

}  // namespace
}  // namespace baton::policy
