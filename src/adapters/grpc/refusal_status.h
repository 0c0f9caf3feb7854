#pragma once
// Internal to this room: refusals as gRPC statuses, and what a call's metadata says.

#include "base/result.h"
#include "domain/request.h"
#include "ports/inference_front.h"
#include "protocol/grpc_wire/metadata.h"
#include "protocol/grpc_wire/status.h"

namespace baton::adapters::grpc_api {

using protocol::grpc_wire::Metadata;
using protocol::grpc_wire::Status;
using protocol::grpc_wire::StatusCode;

// invalid INVALID_ARGUMENT · too_large RESOURCE_EXHAUSTED · unauthorized UNAUTHENTICATED ·
// not_found NOT_FOUND · unsupported UNIMPLEMENTED · not_ready, queue_full, overloaded and
// shutting_down UNAVAILABLE · client_gone CANCELLED · engine_failed INTERNAL. A deadline that the
// client set (gRPC deadline, timeout parameter or header) is DEADLINE_EXCEEDED once it has passed;
// a limit of the model's queue is UNAVAILABLE, as in Triton.
[[nodiscard]] StatusCode status_code(EndReason reason, bool client_deadline_passed);
// The status, and for clients that look deeper the reason and a retry delay as trailing metadata
// (`baton-reason`, `grpc-retry-pushback-ms`).
[[nodiscard]] Status status_of(const Refusal& refusal, bool client_deadline_passed = false);

// Error: the caller has no right key, or a header stands twice of which only one can count.
[[nodiscard]] Result<void, Refusal> admit(const Metadata& metadata, const ports::Caller& caller,
                                          const ports::InferenceFront& front);
// Adds the headers' deadline and class. Error: kInvalid.
[[nodiscard]] Result<void, Refusal> apply_headers(const Metadata& metadata, RequestContext& out);
// Who calls from `peer`.
[[nodiscard]] ports::Caller caller_of(const Metadata& metadata, const std::string& peer);
// Null: none.
[[nodiscard]] std::shared_ptr<const ForwardedHeaders> forwarded(const Metadata& metadata,
                                                                const HeaderPatterns& patterns);
// Client id, tenant and trace.
void add_names(const Metadata& metadata, RequestContext& out);

}  // namespace baton::adapters::grpc_api
