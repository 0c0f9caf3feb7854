#pragma once

#include <cstdint>
#include <string>

namespace baton::app {

struct ModelsOptions {
  std::string host = "127.0.0.1";
  uint16_t metrics_port = 8002;
  std::string api_key;  // empty: none
  bool as_json = false;
};

// Lists the models of a running baton from its metrics port: versions, states, reasons, curves.
// Exit status 1 when it cannot.
[[nodiscard]] int run_models(const ModelsOptions& options);

}  // namespace baton::app
