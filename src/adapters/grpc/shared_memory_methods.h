#pragma once
// Internal to this room: SystemSharedMemory* and CudaSharedMemory*.

#include "adapters/grpc/call.h"

namespace baton::adapters::grpc_api {

void add_shared_memory_methods(MethodTable& methods);

}  // namespace baton::adapters::grpc_api
