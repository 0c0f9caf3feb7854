#pragma once

#include <cstdint>
#include <string>

namespace baton::app {

// Lists the models of a running baton from its metrics port: versions, states, reasons, curves.
// Exit status 1 when it cannot.
[[nodiscard]] int run_models(const std::string& host, uint16_t metrics_port, bool as_json);

}  // namespace baton::app
