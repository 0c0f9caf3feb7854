#pragma once

#include <span>
#include <string>

#include "domain/statistics.h"

namespace baton::protocol::oip {

// The answer of the statistics extension.
[[nodiscard]] std::string statistics_json(std::span<const ModelStatistics> models);

}  // namespace baton::protocol::oip
