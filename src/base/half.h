#pragma once
// FP16 (IEEE 754 binary16) and BF16 as bit patterns, converted with round-to-nearest-even.

#include <cstdint>

namespace baton {

[[nodiscard]] uint16_t float_to_fp16(float value);
[[nodiscard]] float fp16_to_float(uint16_t bits);  // exact
[[nodiscard]] uint16_t float_to_bf16(float value);
[[nodiscard]] float bf16_to_float(uint16_t bits);  // exact

// From double in one rounding, so that a JSON number is not rounded twice on its way.
[[nodiscard]] uint16_t double_to_fp16(double value);
[[nodiscard]] uint16_t double_to_bf16(double value);

}  // namespace baton
