#include "adapters/grpc/infer_call.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpc/support/time.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>

#include "adapters/grpc/status.h"
#include "baton_inference.pb.h"
#include "domain/request_parameters.h"
#include "protocol/oip/request_headers.h"
#include "protocol/trace_context/traceparent.h"

namespace baton::adapters::grpc_api {
namespace {

// Longer messages are read by a job: 256 KiB take some hundred microseconds at most.
constexpr size_t kMostBytesOnQueue = 256 << 10;
constexpr size_t kCopyBytes = 4096;  // smaller outputs are cheaper to copy than to hand over
// A call that is cancelled this close to its deadline has run out of time, whoever noticed first.
constexpr Duration kDeadlineSlack = Duration::ms(5);

protocol::oip::FoundHeader find_metadata(const grpc::ServerContext& context,
                                         std::string_view name) {
  const auto [first, end] =
      context.client_metadata().equal_range(grpc::string_ref(name.data(), name.size()));
  if (first == end) return {};
  return {static_cast<size_t>(std::distance(first, end)),
          std::string_view(first->second.data(), first->second.size())};
}

std::optional<std::string_view> metadata(const grpc::ServerContext& context,
                                         std::string_view name) {
  const auto found = find_metadata(context, name);
  if (found.count == 0) return std::nullopt;
  return found.value;
}

// "ipv4:127.0.0.1:50000" or "ipv6:%5B::1%5D:50000" without scheme and port.
std::string address_of(const std::string& peer) {
  const size_t scheme = peer.find(':');
  const size_t port = peer.rfind(':');
  if (scheme == std::string::npos || port <= scheme) return peer;
  std::string address = peer.substr(scheme + 1, port - scheme - 1);
  if (address.starts_with("%5B") && address.ends_with("%5D")) {
    address = address.substr(3, address.size() - 6);
  }
  return address;
}

// As the library has it: std::chrono's nanoseconds end 292 years after 1970, and a client may say
// 99999999H.
void apply_grpc_deadline(const grpc::ServerContext& context, RequestContext& out) {
  constexpr int64_t kLongestS = 10LL * 365 * 24 * 3600;  // a longer deadline is none
  const gpr_timespec deadline = context.raw_deadline();
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  if (left.tv_sec > kLongestS) return;
  out.deadline = out.arrival + Duration::s(left.tv_sec) + Duration::ns(left.tv_nsec);
}

// A message in memory. Raw tensors keep their size; a small INT64 in int64_contents is one byte on
// the wire and up to 32 in memory, as fields grow by doubling; an empty string is 2 and up to 80.
constexpr uint64_t kMostGrowth = 32;
constexpr uint64_t kFreeGrowthBytes = 4 << 20;

using ParsedMessage = std::shared_ptr<const inference::ModelInferRequest>;

// The message and what it is allocated from.
struct MessageStorage {
  google::protobuf::Arena arena;
  inference::ModelInferRequest* message = nullptr;
};

// Counts the tensors and parameters of a message, those of its tensors too, before it is parsed:
// two bytes on the wire can become more than a hundred in memory. What is malformed is left to the
// parser.
class EntryCounter {
 public:
  explicit EntryCounter(google::protobuf::io::CodedInputStream& in) : in_(in) {}

  // False: more than kMost.
  bool within_limit() {
    while (const uint32_t tag = in_.ReadTag()) {
      if (++entries_ > kMost) return false;
      const int field = WireFormatLite::GetTagFieldNumber(tag);
      const bool input = field == inference::ModelInferRequest::kInputsFieldNumber;
      const bool output = field == inference::ModelInferRequest::kOutputsFieldNumber;
      const bool nested =
          WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      if ((input || output) && nested) {
        const int parameters = input ? kInputParameters : kOutputParameters;
        if (!count_parameters(parameters)) return false;
        continue;
      }
      if (!WireFormatLite::SkipField(&in_, tag)) break;
    }
    return true;
  }

  static constexpr uint32_t kMost = 4096;

 private:
  using WireFormatLite = google::protobuf::internal::WireFormatLite;
  static constexpr int kInputParameters =
      inference::ModelInferRequest::InferInputTensor::kParametersFieldNumber;
  static constexpr int kOutputParameters =
      inference::ModelInferRequest::InferRequestedOutputTensor::kParametersFieldNumber;

  bool count_parameters(int parameters) {
    uint32_t length = 0;
    if (!in_.ReadVarint32(&length)) return true;
    const auto limit = in_.PushLimit(static_cast<int>(std::min<uint32_t>(length, INT32_MAX)));
    while (const uint32_t tag = in_.ReadTag()) {
      if (WireFormatLite::GetTagFieldNumber(tag) == parameters && ++entries_ > kMost) return false;
      if (!WireFormatLite::SkipField(&in_, tag)) break;
    }
    in_.Skip(in_.BytesUntilLimit());
    in_.PopLimit(limit);
    return true;
  }

  google::protobuf::io::CodedInputStream& in_;
  uint32_t entries_ = 0;
};

Result<void, Refusal> check_entries(grpc::ByteBuffer* bytes) {
  grpc::ProtoBufferReader reader(bytes);
  google::protobuf::io::CodedInputStream in(&reader);
  if (EntryCounter(in).within_limit()) return {};
  return fail(Refusal{
      EndReason::kTooLarge, "the request has more than 4096 inputs, outputs and parameters", {}});
}

// `held` becomes what the message counts in the limits on requests in flight.
Result<ParsedMessage, Refusal> parse(grpc::ByteBuffer* bytes, uint64_t& held) {
  auto storage = std::make_shared<MessageStorage>();
  storage->message =
      google::protobuf::Arena::CreateMessage<inference::ModelInferRequest>(&storage->arena);
  BATON_TRY(check_entries(bytes));
  grpc::ProtoBufferReader reader(bytes);
  if (!reader.status().ok() || !storage->message->ParseFromZeroCopyStream(&reader)) {
    return fail(Refusal{EndReason::kInvalid, "the request is not a ModelInferRequest", {}});
  }
  const uint64_t grown = storage->arena.SpaceAllocated();
  if (grown > kMostGrowth * held + kFreeGrowthBytes) {
    return fail(Refusal{EndReason::kTooLarge,
                        "the message becomes more than 32 times larger in memory; send "
                        "raw_input_contents",
                        {}});
  }
  held = std::max(held, grown);
  const auto* message = storage->message;
  return ParsedMessage(std::move(storage), message);
}

// Keeps a result alive until the library has sent a slice of it.
grpc::Slice slice_of(std::span<const std::byte> bytes, const std::vector<Storage>& storage) {
  auto* kept = new std::vector<Storage>(storage);
  return grpc::Slice(
      const_cast<std::byte*>(bytes.data()), bytes.size(),
      [](void* user) { delete static_cast<std::vector<Storage>*>(user); }, kept);
}

}  // namespace

grpc::StatusCode status_code(EndReason reason, bool client_deadline_passed) {
  switch (reason) {
    case EndReason::kOk:
      return grpc::StatusCode::OK;
    case EndReason::kInvalid:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case EndReason::kTooLarge:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case EndReason::kUnauthorized:
      return grpc::StatusCode::UNAUTHENTICATED;
    case EndReason::kNotFound:
      return grpc::StatusCode::NOT_FOUND;
    case EndReason::kMethodNotAllowed:
    case EndReason::kUnsupported:
      return grpc::StatusCode::UNIMPLEMENTED;
    case EndReason::kDeadlineQueued:
    case EndReason::kDeadlineRunning:
      return client_deadline_passed ? grpc::StatusCode::DEADLINE_EXCEEDED
                                    : grpc::StatusCode::UNAVAILABLE;
    case EndReason::kNotReady:
    case EndReason::kQueueFull:
    case EndReason::kOverloaded:
    case EndReason::kShuttingDown:
      return grpc::StatusCode::UNAVAILABLE;
    case EndReason::kSlowClient:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case EndReason::kClientGone:
      return grpc::StatusCode::CANCELLED;
    case EndReason::kEngineFailed:
      break;
  }
  return grpc::StatusCode::INTERNAL;
}

grpc::Status refuse(grpc::ServerContext& context, const Refusal& refusal,
                    bool client_deadline_passed) {
  context.AddTrailingMetadata("baton-reason", std::string(end_reason_name(refusal.reason)));
  if (refusal.retry_after > Duration()) {
    context.AddTrailingMetadata("grpc-retry-pushback-ms", std::to_string(refusal.retry_after.ms()));
  }
  return {status_code(refusal.reason, client_deadline_passed), refusal.message};
}

Result<void, Refusal> admit(const grpc::ServerContext& context, const ports::Caller& caller,
                            const ports::InferenceFront& front) {
  BATON_TRY(protocol::oip::refuse_repeated_headers(
      [&](std::string_view name) { return find_metadata(context, name); }));
  if (auto refusal = front.refuse_caller(caller)) return fail(std::move(*refusal));
  return {};
}

ports::Caller caller_of(const grpc::ServerContext& context) {
  ports::Caller caller;
  caller.peer = address_of(context.peer());
  if (const auto authorization = metadata(context, "authorization")) {
    caller.authorization = *authorization;
  } else if (const auto key = metadata(context, "x-api-key")) {
    caller.authorization = "Bearer " + std::string(*key);
  }
  return caller;
}

RequestContext context_of(const grpc::ServerContext& context, const ports::Clock& clock) {
  RequestContext out;
  out.protocol = Protocol::kGrpc;
  out.arrival = clock.now();
  apply_grpc_deadline(context, out);
  if (const auto tenant = metadata(context, "x-tenant")) out.tenant = *tenant;
  if (const auto id = metadata(context, "x-request-id")) out.client_id = *id;
  if (const auto trace = metadata(context, "traceparent")) {
    out.trace = protocol::trace_context::parse_traceparent(*trace);
  }
  return out;
}

Result<void, Refusal> apply_headers(const grpc::ServerContext& context, RequestContext& out) {
  return protocol::oip::apply_request_headers(
      [&](std::string_view name) { return find_metadata(context, name); }, out);
}

void InferCall::await(const InferSource& source) {
  auto call = std::make_shared<InferCall>(source);
  call->context_.AsyncNotifyWhenDone(call->ending_.of(call));
  bool asked = false;
  source.queue.ask_for_call([&](grpc::ServerCompletionQueue& queue) {
    source.method.request(&call->context_, &call->message_, &call->writer_, &queue,
                          call->arrival_.of(call));
    asked = true;
  });
  if (!asked) call->ending_.forget();
}

InferCall::InferCall(const InferSource& source) : source_(source), worker_(source.workers.next()) {}

InferCall::~InferCall() {
  if (entered_) source_.queue.leave();
}

void InferCall::arrived(bool ok) {
  if (!ok) return ending_.forget();
  entered_ = source_.queue.enter();
  if (!entered_) return;
  await(source_);
  begin();
}

Result<std::shared_ptr<InferRequest>, Refusal> InferCall::decode(RequestContext& context,
                                                                 std::string& model) {
  // Before a byte of it is parsed: without a key nothing is spent on a message.
  BATON_TRY(admit(context_, caller_, *worker_.front));
  BATON_TRY(apply_headers(context_, context));
  BATON_ASSIGN(ParsedMessage message, parse(&message_, context.bytes));
  message_.Clear();  // the message has its own copy
  model = message->model_name();
  BATON_ASSIGN(auto decoded, protocol::oip_proto::decode_infer_request(std::move(message)));
  client_id_ = decoded.request.context.client_id;
  if (!client_id_.empty()) context.client_id = client_id_;
  BATON_TRY(apply_parameters(decoded.parameters, context));
  deadline_ = context.deadline;
  decoded.request.context = std::move(context);
  return std::make_shared<InferRequest>(std::move(decoded.request));
}

void InferCall::begin() {
  caller_ = caller_of(context_);
  RequestContext context = context_of(context_, source_.clock);
  context.bytes = message_.Length();
  if (worker_.readers == nullptr || context.bytes <= kMostBytesOnQueue) {
    return read(std::move(context), true);
  }
  worker_.readers->run(
      [self = shared_from_this(), context = std::move(context)](ports::Cancellation&) mutable {
        self->read(std::move(context), false);
      });
}

void InferCall::read(RequestContext context, bool lend) {
  std::string model;
  auto request = decode(context, model);
  if (request.has_value()) {
    auto infer = [self = shared_from_this(), typed = *std::move(request)]() mutable {
      self->infer(std::move(typed));
    };
    // On this thread when the worker is idle: waking its own costs more than a small model's run.
    if (lend) return worker_.executor->run_or_post(std::move(infer));
    return worker_.executor->post(std::move(infer));
  }
  message_.Clear();  // it may be waited for that the client takes its refusal
  worker_.executor->post([self = shared_from_this(), model, refusal = request.error(),
                          context = std::move(context)]() mutable {
    self->worker_.front->count_refused(self->caller_, std::move(context), model, refusal);
    self->worker_.writes->watch(*self, 0);
  });
  end(refuse(context_, request.error()));
}

void InferCall::end(const grpc::Status& status) {
  writer_.FinishWithError(status, finishing_.of(shared_from_this()));
}

void InferCall::infer(std::shared_ptr<InferRequest> request) {
  if (cancelled_) {
    Refusal gone{EndReason::kClientGone, "the client cancelled the call", {}};
    worker_.front->count_refused(caller_, request->context, request->model, gone);
    return finish(fail(std::move(gone)));
  }
  token_ = worker_.front->infer(
      caller_, std::move(request),
      [self = shared_from_this()](auto answer) { self->finish(std::move(answer)); });
}

void InferCall::finish(Result<ports::InferAnswer, Refusal> answer) {
  finished_ = true;
  if (answer.has_value()) return write(*std::move(answer));
  worker_.writes->watch(*this, 0);
  end(refuse(context_, answer.error(), source_.clock.now() >= deadline_));
}

void InferCall::write(ports::InferAnswer answer) {
  const auto encoded = protocol::oip_proto::encode_infer_response(
      answer.result, {answer.model, answer.version, client_id_});
  std::vector<grpc::Slice> slices;
  std::string pending = encoded.head;
  for (const auto& raw : encoded.raws) {
    pending += raw.prefix;
    if (raw.bytes.size() < kCopyBytes) {
      pending.append(reinterpret_cast<const char*>(raw.bytes.data()), raw.bytes.size());
      continue;
    }
    slices.emplace_back(std::exchange(pending, {}));
    slices.push_back(slice_of(raw.bytes, answer.result.storage));
  }
  if (!pending.empty()) slices.emplace_back(pending);
  // The last of them counts the answer among those that wait for clients.
  if (!answer.result.storage.empty()) held_ = std::move(answer.result.storage.back());
  const grpc::ByteBuffer bytes(slices.data(), slices.size());
  worker_.writes->watch(*this, bytes.Length());
  writer_.Finish(bytes, grpc::Status::OK, finishing_.of(shared_from_this()));
}

void InferCall::has_ended(bool) {
  if (!context_.IsCancelled()) return;
  // The request's own deadline ends it.
  if (source_.clock.now() + kDeadlineSlack >= deadline_) return;
  worker_.executor->post([self = shared_from_this()] {
    self->cancelled_ = true;
    if (!self->finished_ && self->token_ != ports::InferToken()) {
      self->worker_.front->cancel(self->token_);
    }
  });
}

}  // namespace baton::adapters::grpc_api
