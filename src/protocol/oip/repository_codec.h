#pragma once
// Bodies of the model repository extension.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "domain/end_reason.h"
#include "protocol/json/reader.h"

namespace baton::protocol::oip {

struct IndexRequest {
  bool ready = false;
};

struct LoadRequestBody {
  std::optional<int64_t> version;
  std::optional<std::string> config;
  std::map<std::string, std::string> files;  // decoded, by "<version>/<file>"
};

struct UnloadRequestBody {
  std::optional<int64_t> version;
  bool dependents = false;
};

// Each: an empty body is one without parameters; kBodyPadding bytes follow it. Error: kInvalid.
[[nodiscard]] Result<IndexRequest, Refusal> decode_index_request(std::string_view body,
                                                                 json::JsonParser& parser);
[[nodiscard]] Result<LoadRequestBody, Refusal> decode_load_request(std::string_view body,
                                                                   json::JsonParser& parser);
[[nodiscard]] Result<UnloadRequestBody, Refusal> decode_unload_request(std::string_view body,
                                                                       json::JsonParser& parser);

// What holds for the parameters of a load in every protocol. Error: files without a configuration,
// or a name that is no `<version>/<file>` inside the model's folder.
[[nodiscard]] Result<void, Refusal> check_load_parameters(
    const std::optional<std::string>& config, const std::map<std::string, std::string>& files);
// Of the parameter `version`, as text.
[[nodiscard]] Result<int64_t, Refusal> parse_version_parameter(std::string_view text);

// RFC 4648 with padding, no line breaks. Nothing when it is not that.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);

}  // namespace baton::protocol::oip
