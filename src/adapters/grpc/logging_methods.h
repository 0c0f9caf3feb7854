#pragma once
// Internal to this room: LogSettings.

#include "adapters/grpc/call.h"

namespace baton::adapters::grpc_api {

void add_logging_methods(MethodTable& methods);

}  // namespace baton::adapters::grpc_api
