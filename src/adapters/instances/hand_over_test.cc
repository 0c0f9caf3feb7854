#include "adapters/instances/hand_over.h"

#include <gtest/gtest.h>

#include <chrono>

namespace baton::adapters {
namespace {

class WallClock final : public ports::Clock {
 public:
  Instant now() const override {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return Instant::from_ns(std::chrono::nanoseconds(time).count());
  }
  WallTime wall() const override { return {}; }
};

TEST(HandOver, IsWithinWhatThreadsTake) {
  const Duration measured = measure_hand_over(WallClock());
  EXPECT_GE(measured, Duration::us(1));
  EXPECT_LE(measured, Duration::us(100));
}

}  // namespace
}  // namespace baton::adapters
