#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "domain/model.h"
#include "domain/server_config.h"

namespace baton::app {

struct ServeOptions {
  ServerConfig config;
  std::string ports_file;  // where the chosen ports are written as JSON; empty: nowhere
  // Reads the configuration again, for SIGHUP; null: that does nothing.
  std::function<Result<ServerConfig, std::string>()> reread{};
};

// Serves until SIGTERM or SIGINT, then drains. Returns the exit status; the error says why it did
// not start. A second signal, and an end that takes longer than configured, end the process from
// within (app/signals.h).
[[nodiscard]] Result<int, LoadFailure> run_server(const ServeOptions& options);

// The library to open: as configured, else beside the binary's build tree, else by the loader's own
// rules.
[[nodiscard]] std::string find_ort_library(const std::string& configured);

}  // namespace baton::app
