#pragma once
// Internal to this room: ModelInfer.

#include "adapters/grpc/call.h"

namespace baton::adapters::grpc_api {

[[nodiscard]] Method infer_method();

}  // namespace baton::adapters::grpc_api
