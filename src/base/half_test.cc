#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>

namespace baton {
namespace {

TEST(Half, EveryFp16PatternSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    const float value = fp16_to_float(pattern);
    if (std::isnan(value)) continue;  // payloads are not kept
    ASSERT_EQ(float_to_fp16(value), pattern);
  }
}

TEST(Half, EveryBf16PatternSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    const float value = bf16_to_float(pattern);
    if (std::isnan(value)) continue;
    ASSERT_EQ(float_to_bf16(value), pattern);
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(double_to_fp16(2049), 0x6800);  // tie between 2048 and 2050: even mantissa
  EXPECT_EQ(double_to_fp16(2051), 0x6802);
  EXPECT_EQ(double_to_fp16(65519.99), 0x7bff);
  EXPECT_EQ(double_to_fp16(65520), 0x7c00);  // rounds to infinity
  EXPECT_EQ(double_to_bf16(1.00390625), 0x3f80);
  EXPECT_EQ(double_to_fp16(-0.0), 0x8000);
  EXPECT_EQ(double_to_fp16(5.9604644775390625e-08), 0x0001);  // the smallest subnormal
}

TEST(Half, RoundsADoubleOnce) {
  // 1 + 2^-11 + 2^-40 lies just above the tie: rounding by way of float would fall to 1.0.
  EXPECT_EQ(double_to_fp16(1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)), 0x3c01);
}

}  // namespace
}  // namespace baton
