#include "adapters/instances/hand_over.h"

#include <gtest/gtest.h>

#include "ports/testing/steady_clock.h"

namespace baton::adapters {
namespace {

TEST(HandOver, IsWithinWhatThreadsTake) {
  const Duration measured = measure_hand_over(ports::testing::SteadyClock());
  EXPECT_GE(measured, Duration::us(20));
  EXPECT_LE(measured, Duration::us(100));
}

}  // namespace
}  // namespace baton::adapters
