// config.pbtxt: no text crashes the reader, and what is accepted can be encoded.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "protocol/model_config/model_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace baton::protocol::model_config;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Unsupported unsupported : {Unsupported::kRefuse, Unsupported::kWarn}) {
    auto parsed = parse_model_config(text, unsupported);
    if (!parsed.has_value()) {
      if (parsed.error().message.empty()) std::abort();
      continue;
    }
    encode_model_config(parsed->config);
    if (parsed->config.json.empty()) std::abort();
  }
  return 0;
}
