#pragma once
// Internal to this room: refusals as gRPC statuses, and what a call's metadata says.

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "base/result.h"
#include "domain/request.h"
#include "ports/clock.h"
#include "ports/inference_front.h"

namespace baton::adapters::grpc_api {

// invalid INVALID_ARGUMENT · too_large RESOURCE_EXHAUSTED · unauthorized UNAUTHENTICATED ·
// not_found NOT_FOUND · unsupported UNIMPLEMENTED · not_ready, queue_full, overloaded and
// shutting_down UNAVAILABLE · client_gone CANCELLED · engine_failed INTERNAL. A deadline that the
// client set (gRPC deadline, timeout parameter or header) is DEADLINE_EXCEEDED once it has passed;
// a limit of the model's queue is UNAVAILABLE, as in Triton.
[[nodiscard]] grpc::StatusCode status_code(EndReason reason, bool client_deadline_passed);
// The status, and for clients that look deeper the reason and a retry delay as trailing metadata
// (`baton-reason`, `grpc-retry-pushback-ms`).
[[nodiscard]] grpc::Status refuse(grpc::ServerContext& context, const Refusal& refusal,
                                  bool client_deadline_passed = false);

// Error: the caller has no right key, or a header stands twice of which only one can count.
[[nodiscard]] Result<void, Refusal> admit(const grpc::ServerContext& context,
                                          const ports::Caller& caller,
                                          const ports::InferenceFront& front);
[[nodiscard]] ports::Caller caller_of(const grpc::ServerContext& context);
// Arrival, the call's deadline, client id, tenant and trace.
[[nodiscard]] RequestContext context_of(const grpc::ServerContext& context,
                                        const ports::Clock& clock);
// Adds the headers' deadline and class.
[[nodiscard]] Result<void, Refusal> apply_headers(const grpc::ServerContext& context,
                                                  RequestContext& out);

}  // namespace baton::adapters::grpc_api
