#pragma once

#include "domain/server_config.h"

namespace baton::app {

// Opens every model of the repositories and says which would load; nothing is started. Exit status:
// 0 when all would, 1 when one would not or the repositories or ONNX Runtime cannot be opened.
[[nodiscard]] int run_check(const ServerConfig& config, bool as_json);

}  // namespace baton::app
