#include "adapters/load/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace baton::adapters::load {
namespace {

TEST(Arrivals, ConstantOnesAreEvenlySpaced) {
  const Schedule schedule = constant_arrivals(1000, Duration::s(2));
  ASSERT_EQ(schedule.size(), 2000U);
  EXPECT_EQ(schedule[0], Duration());
  EXPECT_EQ(schedule[1500], Duration::ms(1500));
}

TEST(Arrivals, PoissonOnesHaveTheRateAndItsVariance) {
  Random random(1);
  const Schedule schedule = poisson_arrivals(500, Duration::s(100), random);
  EXPECT_NEAR(static_cast<double>(schedule.size()), 50'000, 4 * std::sqrt(50'000.0));
  EXPECT_TRUE(std::ranges::is_sorted(schedule));
  EXPECT_LT(schedule.back(), Duration::s(100));
  double squares = 0;  // of gaps: an exponential's variance is its mean squared
  for (size_t i = 1; i < schedule.size(); ++i) {
    squares += std::pow((schedule[i] - schedule[i - 1]).seconds() - 2e-3, 2);
  }
  EXPECT_NEAR(squares / static_cast<double>(schedule.size()), 4e-6, 0.2e-6);
}

TEST(Arrivals, TheSameSeedGivesTheSameSchedule) {
  Random one(7);
  Random two(7);
  EXPECT_EQ(poisson_arrivals(100, Duration::s(1), one), poisson_arrivals(100, Duration::s(1), two));
}

TEST(Arrivals, ATraceKeepsItsGaps) {
  const auto schedule = trace_arrivals("id,arrival_s,tokens\r\n1,2.5,7\r\n2,1.0,7\r\n\r\n3,9,7\r\n",
                                       0, Duration::s(5));
  ASSERT_TRUE(schedule.has_value()) << schedule.error();
  EXPECT_EQ(*schedule, (Schedule{Duration(), Duration::ms(1500)}));  // sorted; 8 s is too late
}

TEST(Arrivals, ATraceIsStretchedToARate) {
  const auto schedule = trace_arrivals("arrival_s\n0\n1\n2\n", 100, Duration::s(5));
  ASSERT_TRUE(schedule.has_value());
  EXPECT_EQ(*schedule, (Schedule{Duration(), Duration::ms(10), Duration::ms(20)}));
}

TEST(Arrivals, ABadTraceIsRefusedWithItsLine) {
  EXPECT_NE(trace_arrivals("arrival_s\n1\nx\n", 0, Duration::s(1)).error().find("line 3"),
            std::string::npos);
  EXPECT_FALSE(trace_arrivals("time\n1\n", 0, Duration::s(1)).has_value());
  EXPECT_FALSE(trace_arrivals("arrival_s\n", 0, Duration::s(1)).has_value());
}

}  // namespace
}  // namespace baton::adapters::load
