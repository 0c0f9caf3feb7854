#pragma once
// Internal to this room: ModelStatistics.

#include "adapters/grpc/call.h"

namespace baton::adapters::grpc_api {

void add_statistics_methods(MethodTable& methods);

}  // namespace baton::adapters::grpc_api
