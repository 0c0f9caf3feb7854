#pragma once

#include <string>

#include "base/result.h"
#include "domain/server_config.h"

namespace baton::app {

// Reads a configuration file with the process's environment. Error: "FILE:LINE: what is wrong".
[[nodiscard]] Result<ServerConfig, std::string> read_config_file(const std::string& path);

}  // namespace baton::app
