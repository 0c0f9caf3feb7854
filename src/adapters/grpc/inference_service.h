#pragma once
// Internal to this room: the inference service's calls.

#include <memory>

#include "adapters/grpc/workers.h"

namespace grpc {
class Service;
}

namespace baton::adapters::grpc_api {

// All arguments outlive the service.
[[nodiscard]] std::unique_ptr<grpc::Service> make_inference_service(Workers& workers,
                                                                    const ports::Clock& clock);

}  // namespace baton::adapters::grpc_api
