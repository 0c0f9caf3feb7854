#include "base/half.h"

#include <bit>
#include <cmath>

namespace baton {
namespace {

struct Format {
  int mantissa_bits;
  int bias;
  int max_exponent;  // of the largest finite value
};
constexpr Format kFp16{10, 15, 15};
constexpr Format kBf16{7, 127, 127};

// Rounds a finite or infinite double to the nearest value of the format, ties to even.
uint16_t round_to(double value, Format f) {
  const int exponent_width = 15 - f.mantissa_bits;
  const auto exponent_all_ones =
      static_cast<uint16_t>(((1U << exponent_width) - 1) << f.mantissa_bits);
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000U : 0U);
  if (std::isnan(value)) {
    return static_cast<uint16_t>(sign | exponent_all_ones | (1U << (f.mantissa_bits - 1)));
  }
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return static_cast<uint16_t>(sign | exponent_all_ones);
  const int min_exponent = 1 - f.bias;
  int exponent = std::ilogb(magnitude);
  if (exponent < min_exponent) exponent = min_exponent;
  if (exponent > f.max_exponent) return static_cast<uint16_t>(sign | exponent_all_ones);
  // The unit in the last place at this exponent; nearbyint rounds ties to even by default.
  const double scaled = std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - exponent));
  auto units = static_cast<uint32_t>(scaled);
  const uint32_t implicit = 1U << f.mantissa_bits;
  if (units >= implicit << 1) {  // rounded up to the next binade
    units >>= 1;
    ++exponent;
  }
  if (exponent > f.max_exponent) return static_cast<uint16_t>(sign | exponent_all_ones);
  const uint32_t biased =
      units < implicit ? 0U : static_cast<uint32_t>(exponent + f.bias);  // subnormals: 0
  const uint32_t mantissa = units & (implicit - 1);
  return static_cast<uint16_t>(sign | (biased << f.mantissa_bits) | mantissa);
}

}  // namespace

uint16_t double_to_fp16(double value) {
  return round_to(value, kFp16);
}
uint16_t double_to_bf16(double value) {
  return round_to(value, kBf16);
}
uint16_t float_to_fp16(float value) {
  return round_to(static_cast<double>(value), kFp16);
}
uint16_t float_to_bf16(float value) {
  return round_to(static_cast<double>(value), kBf16);
}

float bf16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

float fp16_to_float(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fU;
  const uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

}  // namespace baton
