#pragma once
// The JSON of everything but inference: metadata, errors, and the mapping of end reasons to HTTP.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "domain/end_reason.h"
#include "domain/model.h"

namespace baton::protocol::oip {

// {"error": message, "reason": name}
[[nodiscard]] std::string error_json(const Refusal& refusal);
[[nodiscard]] int http_status(EndReason reason);
// Seconds for Retry-After, rounded up; 0 when the refusal carries no advice.
[[nodiscard]] int64_t retry_after_seconds(const Refusal& refusal);

// Names of the protocol extensions that are offered.
[[nodiscard]] std::vector<std::string_view> extensions(bool shared_memory, bool trace);
[[nodiscard]] std::string server_metadata_json(std::string_view version,
                                               std::span<const std::string_view> extensions);
// `versions` ascend. Shapes include the batch dimension as -1 where the model batches.
[[nodiscard]] std::string model_metadata_json(const ModelConfig& config,
                                              std::span<const int64_t> versions);

}  // namespace baton::protocol::oip
