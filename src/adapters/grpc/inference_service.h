#pragma once
// Internal to this room: the methods of the Open Inference Protocol's service.

#include "adapters/grpc/call.h"

namespace baton::adapters::grpc_api {

// All but ModelInfer, those that are not offered included.
void add_inference_methods(MethodTable& methods);
// Those of the model repository extension.
void add_repository_methods(MethodTable& methods);

}  // namespace baton::adapters::grpc_api
