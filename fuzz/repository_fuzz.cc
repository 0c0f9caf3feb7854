// Commands to the model repository: no body and no configuration crashes the reader, and files that
// are accepted lie inside their version's folder.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "protocol/model_config/model_config.h"
#include "protocol/oip/repository_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace baton::protocol;
  std::string padded(reinterpret_cast<const char*>(data), size);
  padded.append(64, '\0');
  const std::string_view body = std::string_view(padded).substr(0, size);
  json::JsonParser parser;
  const auto index = oip::decode_index_request(body, parser);
  if (!index.has_value() && index.error().message.empty()) std::abort();
  const auto unload = oip::decode_unload_request(body, parser);
  if (unload.has_value() && unload->version && *unload->version < 1) std::abort();
  const auto load = oip::decode_load_request(body, parser);
  if (!load.has_value()) {
    if (load.error().message.empty()) std::abort();
    return 0;
  }
  for (const auto& [name, content] : load->files) {
    const bool leaves = name.front() == '/' || name.find("/../") != std::string::npos ||
                        name.ends_with("/..") || name.starts_with("../");
    if (leaves || content.size() > size) std::abort();
  }
  if (!load->config) return 0;
  const auto parsed =
      model_config::parse_model_config_json(*load->config, model_config::Unsupported::kWarn);
  if (!parsed.has_value() && parsed.error().message.empty()) std::abort();
  return 0;
}
