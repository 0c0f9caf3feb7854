// baton.yaml: no text crashes the reader; every refusal has a sentence.

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/server_config/server_config_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace baton::protocol::server_config;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed =
      parse_server_config(text, [](const std::string& name) -> std::optional<std::string> {
        if (name == "X") return "1";
        return std::nullopt;
      });
  if (!parsed.has_value() && parsed.error().message.empty()) std::abort();
  return 0;
}
