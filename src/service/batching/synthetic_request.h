#pragma once
// Requests that no client sent, for warm-up.

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/random.h"
#include "base/result.h"
#include "domain/model.h"
#include "domain/request.h"

namespace baton::service {

// One request of `items` items for every input that is not optional. Dimensions that may be
// anything are those of the first configured sample that names the input, else 1. Floating-point
// data is uniform in [0, 1), integers are 0 or 1 (a valid index for most models), BYTES a short
// word.
[[nodiscard]] std::shared_ptr<const InferRequest> synthetic_request(const ModelConfig& config,
                                                                    uint64_t items, Random& random);

// The request that a configured sample describes, or a sentence saying why there is none.
[[nodiscard]] Result<std::shared_ptr<const InferRequest>, std::string> sample_request(
    const ModelConfig& config, const WarmupSample& sample,
    const std::map<std::string, std::string>& files, Random& random);

}  // namespace baton::service
