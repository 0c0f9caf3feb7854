#include "adapters/grpc/refusal_status.h"

#include "protocol/oip/request_headers.h"
#include "protocol/trace_context/traceparent.h"

namespace baton::adapters::grpc_api {
namespace {

protocol::oip::FoundHeader lookup(const Metadata& metadata, std::string_view name) {
  return {metadata.count(name), metadata.find(name).value_or("")};
}

}  // namespace

StatusCode status_code(EndReason reason, bool client_deadline_passed) {
  switch (reason) {
    case EndReason::kOk:
      return StatusCode::kOk;
    case EndReason::kInvalid:
      return StatusCode::kInvalidArgument;
    case EndReason::kTooLarge:
      return StatusCode::kResourceExhausted;
    case EndReason::kUnauthorized:
      return StatusCode::kUnauthenticated;
    case EndReason::kNotFound:
      return StatusCode::kNotFound;
    case EndReason::kMethodNotAllowed:
    case EndReason::kUnsupported:
      return StatusCode::kUnimplemented;
    case EndReason::kDeadlineQueued:
    case EndReason::kDeadlineRunning:
      return client_deadline_passed ? StatusCode::kDeadlineExceeded : StatusCode::kUnavailable;
    case EndReason::kNotReady:
    case EndReason::kQueueFull:
    case EndReason::kOverloaded:
    case EndReason::kShuttingDown:
      return StatusCode::kUnavailable;
    case EndReason::kSlowClient:
      return StatusCode::kDeadlineExceeded;
    case EndReason::kClientGone:
      return StatusCode::kCancelled;
    case EndReason::kEngineFailed:
      break;
  }
  return StatusCode::kInternal;
}

Status status_of(const Refusal& refusal, bool client_deadline_passed) {
  Status status{status_code(refusal.reason, client_deadline_passed), refusal.message};
  status.metadata.emplace_back("baton-reason", end_reason_name(refusal.reason));
  if (refusal.retry_after > Duration()) {
    status.metadata.emplace_back("grpc-retry-pushback-ms",
                                 std::to_string(refusal.retry_after.ms()));
  }
  return status;
}

Result<void, Refusal> admit(const Metadata& metadata, const ports::Caller& caller,
                            const ports::InferenceFront& front) {
  BATON_TRY(protocol::oip::refuse_repeated_headers(
      [&](std::string_view name) { return lookup(metadata, name); }));
  if (auto refusal = front.refuse_caller(caller)) return fail(std::move(*refusal));
  return {};
}

Result<void, Refusal> apply_headers(const Metadata& metadata, RequestContext& out) {
  return protocol::oip::apply_request_headers(
      [&](std::string_view name) { return lookup(metadata, name); }, out);
}

ports::Caller caller_of(const Metadata& metadata, const std::string& peer) {
  ports::Caller caller;
  caller.peer = peer;
  if (const auto authorization = metadata.find("authorization")) {
    caller.authorization = *authorization;
  } else if (const auto key = metadata.find("x-api-key")) {
    caller.authorization = "Bearer " + std::string(*key);
  }
  return caller;
}

std::shared_ptr<const ForwardedHeaders> forwarded(const Metadata& metadata,
                                                  const HeaderPatterns& patterns) {
  if (patterns.empty()) return nullptr;
  HeaderCollector headers(patterns);
  for (size_t i = 0; i < metadata.size(); ++i) {
    headers.add(metadata.name_of(i), metadata.value_of(i));
  }
  return headers.take();
}

void add_names(const Metadata& metadata, RequestContext& out) {
  if (const auto tenant = metadata.find("x-tenant")) out.tenant = *tenant;
  if (const auto id = metadata.find("x-request-id")) out.client_id = *id;
  if (const auto trace = metadata.find("traceparent")) {
    out.trace = protocol::trace_context::parse_traceparent(*trace);
  }
}

}  // namespace baton::adapters::grpc_api
