#pragma once
// Internal to this room: ModelInfer and ModelStreamInfer.

#include "adapters/grpc/call.h"

namespace baton::adapters::grpc_api {

[[nodiscard]] Method infer_method();
[[nodiscard]] Method stream_infer_method();

}  // namespace baton::adapters::grpc_api
