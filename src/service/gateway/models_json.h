#pragma once

#include <string>

#include "ports/model_directory.h"

namespace baton::service {

// Every model with its versions, states, reasons, batching bounds and latency curves: what `baton
// models` shows.
[[nodiscard]] std::string models_json(const ports::Directory& directory);

}  // namespace baton::service
