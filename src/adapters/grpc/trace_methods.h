#pragma once
// Internal to this room: the trace extension.

#include "adapters/grpc/call.h"

namespace baton::adapters::grpc_api {

void add_trace_methods(MethodTable& methods);

}  // namespace baton::adapters::grpc_api
