#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/server_config.h"

namespace baton::protocol::server_config {

struct ConfigError {
  int line = 0;  // 1-based; 0: of the whole file
  std::string message;
};

// Gives an environment variable, or nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// Reads a configuration of version 1. Files above 1 MiB are refused.
[[nodiscard]] Result<ServerConfig, ConfigError> parse_server_config(std::string_view text,
                                                                    const Environment& environment);

// Sets one key, such as "log.level", from a text by the rules of the file; nothing expands in it.
// Error: "PATH: expected …, found …", or a path that is no key or takes a list.
[[nodiscard]] Result<void, std::string> apply_setting(ServerConfig& config, std::string_view path,
                                                      const std::string& text);

// Keys that two configurations were given otherwise, in the order of the reference page; texts for
// people.
struct KeyChange {
  std::string path;
  std::string before;
  std::string after;
};
[[nodiscard]] std::vector<KeyChange> changed_keys(const ServerConfig& before,
                                                  const ServerConfig& after);

// A JSON Schema (draft 2020-12) of the file.
[[nodiscard]] std::string server_config_schema();
// The reference page in Markdown.
[[nodiscard]] std::string server_config_reference();

}  // namespace baton::protocol::server_config
