#pragma once
// Internal to this room: what a ModelInferRequest becomes in memory.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "domain/end_reason.h"

namespace baton::adapters::grpc_api {

// Looks through a serialized message before it is parsed. Error: kTooLarge, when it has more than
// 4096 inputs, outputs and parameters, or when its typed contents would become more than 32 times
// larger than the message and 4 MiB, or larger than `memory_max` bytes. What is malformed is left
// to the parser.
[[nodiscard]] Result<void, Refusal> check_growth(std::string_view message, uint64_t memory_max);

}  // namespace baton::adapters::grpc_api
