#pragma once

#include <span>

#include "domain/statistics.h"

namespace inference {
class ModelStatisticsResponse;
}

namespace baton::protocol::oip_proto {

// Adds an entry a model.
void encode_statistics(std::span<const ModelStatistics> models,
                       inference::ModelStatisticsResponse& response);

}  // namespace baton::protocol::oip_proto
