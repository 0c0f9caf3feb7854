#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/model.h"

namespace baton::protocol::model_config {

enum class Unsupported : uint8_t { kRefuse, kWarn };

struct ParsedConfig {
  ModelConfig config;                // json and serialized are empty: see encode
  std::vector<std::string> ignored;  // with kWarn: set fields that are not honoured, by path
};

// Reads and validates one config.pbtxt. Errors name the line, or the field with what was found and
// expected.
[[nodiscard]] Result<ParsedConfig, LoadFailure> parse_model_config(std::string_view text,
                                                                   Unsupported unsupported);

// The same of the JSON that a client sends in its place, in protobuf's form: names as in the .proto
// or in camelCase. At most kMostConfigJson bytes.
inline constexpr size_t kMostConfigJson = 1 << 20;
[[nodiscard]] Result<ParsedConfig, LoadFailure> parse_model_config_json(std::string_view text,
                                                                        Unsupported unsupported);

// Fills `json` and `serialized` from the other members.
void encode_model_config(ModelConfig& config);

}  // namespace baton::protocol::model_config
