#include "app/config_file.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>

#include "protocol/server_config/server_config_codec.h"

namespace baton::app {

Result<ServerConfig, std::string> read_config_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail("the configuration cannot be read: " + path);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  auto parsed = protocol::server_config::parse_server_config(
      text, [](const std::string& name) -> std::optional<std::string> {
        const char* value = std::getenv(name.c_str());
        if (value == nullptr) return std::nullopt;
        return value;
      });
  if (parsed.has_value()) return std::move(*parsed);
  const protocol::server_config::ConfigError& error = parsed.error();
  const std::string place = error.line > 0 ? path + ":" + std::to_string(error.line) : path;
  return fail(place + ": " + error.message);
}

}  // namespace baton::app
