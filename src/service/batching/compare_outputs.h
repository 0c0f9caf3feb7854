#pragma once

#include <optional>
#include <string>

#include "domain/request.h"

namespace baton::service {

// What differs between two results of the same input, as a sentence's end ("output 'y', element 3:
// 0.5 and 0.7"); nothing when they agree. Integers, booleans and BYTES agree exactly.
// Floating-point numbers agree when |a - b| <= absolute + relative * max(|a|, |b|): a larger matrix
// product sums in another order. FP32 1e-4 and 1e-4, FP64 1e-8, FP16 1e-2, BF16 5e-2. NaN agrees
// with NaN. `tolerance` counts where it is more than the type's.
[[nodiscard]] std::optional<std::string> first_difference(const InferResult& a,
                                                          const InferResult& b,
                                                          double tolerance = 0);

}  // namespace baton::service
