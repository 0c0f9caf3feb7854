#include "adapters/grpc/infer_call.h"

#include <google/protobuf/arena.h>

#include <utility>

#include "adapters/grpc/message_growth.h"
#include "base/bytes.h"
#include "baton_inference.pb.h"
#include "domain/request_parameters.h"
#include "protocol/oip_proto/infer_message.h"

namespace baton::adapters::grpc_api {
namespace {

// Longer messages are read by a job: 256 KiB take some hundred microseconds at most.
constexpr size_t kMostBytesOnWorker = 256 << 10;
constexpr size_t kCopyBytes = 4096;  // smaller outputs are cheaper to copy than to hand over
// A call that is cancelled this close to its deadline has run out of time, whoever noticed first.
constexpr Duration kDeadlineSlack = Duration::ms(5);
// What a message may become in memory, over what it may be on the wire.
constexpr uint64_t kMostInMemory = 4;

using ParsedMessage = std::shared_ptr<const inference::ModelInferRequest>;

// The message and what it is allocated from.
struct MessageStorage {
  google::protobuf::Arena arena;
  inference::ModelInferRequest* message = nullptr;
};

// `held` becomes what the message counts in the limits on requests in flight.
Result<ParsedMessage, Refusal> parse_message(const std::string& bytes, uint64_t memory_max,
                                             uint64_t& held) {
  BATON_TRY(check_growth(bytes, memory_max));
  auto storage = std::make_shared<MessageStorage>();
  storage->message =
      google::protobuf::Arena::CreateMessage<inference::ModelInferRequest>(&storage->arena);
  if (!storage->message->ParseFromString(bytes)) {
    return fail(Refusal{EndReason::kInvalid, "the request is not a ModelInferRequest", {}});
  }
  held = std::max(held, storage->arena.SpaceAllocated());
  const auto* message = storage->message;
  return ParsedMessage(std::move(storage), message);
}

// What a message was read into.
struct ReadRequest {
  std::string model;
  std::string id;  // the client's own, for its answer
  Result<std::shared_ptr<InferRequest>, Refusal> request = fail(Refusal{});
};

Result<std::shared_ptr<InferRequest>, Refusal> decode(const Call& call, const std::string& bytes,
                                                      RequestContext& context, ReadRequest& read) {
  BATON_TRY(apply_headers(call.metadata(), context));
  BATON_ASSIGN(
      ParsedMessage message,
      parse_message(bytes, kMostInMemory * call.context().message_bytes_max, context.bytes));
  read.model = message->model_name();
  BATON_ASSIGN(auto decoded, protocol::oip_proto::decode_infer_request(std::move(message)));
  read.id = decoded.request.context.client_id;
  if (!read.id.empty()) context.client_id = read.id;
  BATON_TRY(apply_parameters(decoded.parameters, context));
  decoded.request.context = context;
  return std::make_shared<InferRequest>(std::move(decoded.request));
}

class InferCall final : public std::enable_shared_from_this<InferCall> {
 public:
  explicit InferCall(std::shared_ptr<Call> call)
      : call_(std::move(call)), context_(call_->request_context()) {}

  void begin() {
    call_->on_cancel([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->gone();
    });
    const GrpcWorker& worker = call_->worker();
    if (worker.readers == nullptr || call_->request().size() <= kMostBytesOnWorker) {
      return start(read(call_->take_request()));
    }
    // Until it is read it counts among what is being received.
    waiting_ = call_->context().receiving->lend(context_.bytes);
    if (waiting_ == nullptr) {
      return call_->refuse_counted(
          {EndReason::kOverloaded, "too many large messages wait to be read", Duration::s(1)});
    }
    worker.readers->run(
        [self = shared_from_this(), bytes = call_->take_request()](ports::Cancellation&) mutable {
          auto request = self->read(std::exchange(bytes, {}));
          self->call_->worker().loop->post([self, request = std::move(request)]() mutable {
            self->waiting_ = nullptr;
            self->start(std::move(request));
          });
        });
  }

 private:
  // Any thread: touches nothing that changes meanwhile but `context_`, which is the reader's.
  ReadRequest read(std::string bytes) {
    ReadRequest result;
    result.request = decode(*call_, bytes, context_, result);
    return result;
  }

  void start(ReadRequest read) {
    ports::InferenceFront& front = *call_->worker().front;
    id_ = std::move(read.id);
    deadline_ = context_.deadline;
    if (gone_ && read.request.has_value()) {
      read.request = fail(Refusal{EndReason::kClientGone, "the client cancelled the call", {}});
    }
    if (!read.request.has_value()) {
      front.count_refused(call_->caller(), context_, read.model, read.request.error());
      return call_->finish(status_of(read.request.error()));
    }
    token_ =
        front.infer(call_->caller(), *std::move(read.request),
                    [self = shared_from_this()](auto answer) { self->end(std::move(answer)); });
  }

  void end(Result<ports::InferAnswer, Refusal> answer) {
    ended_ = true;
    if (answer.has_value()) return write(*std::move(answer));
    const bool late = call_->context().clock.now() >= deadline_;
    call_->finish(status_of(answer.error(), late));
  }

  void write(ports::InferAnswer answer) {
    const auto encoded = protocol::oip_proto::encode_infer_response(
        answer.result, {answer.model, answer.version, id_});
    // Keeps the result alive until the last of it is sent, and counted among the answers that wait.
    const auto kept =
        std::make_shared<const std::vector<Storage>>(std::move(answer.result.storage));
    std::vector<MessagePart> parts(1);
    parts.back().text = encoded.head;
    for (const auto& raw : encoded.raws) {
      parts.back().text += raw.prefix;
      const std::string_view bytes = as_chars(raw.bytes);
      if (bytes.size() < kCopyBytes) {
        parts.back().text += bytes;
        continue;
      }
      parts.back().view = bytes;
      parts.back().keep = kept;
      parts.emplace_back();
    }
    parts.back().keep = kept;
    call_->answer(std::move(parts));
  }

  void gone() {
    gone_ = true;
    // The request's own deadline ends it.
    if (call_->context().clock.now() + kDeadlineSlack >= deadline_) return;
    if (!ended_ && token_ != ports::InferToken()) call_->worker().front->cancel(token_);
  }

  const std::shared_ptr<Call> call_;
  RequestContext context_;
  std::string id_;
  Instant deadline_ = Instant::never();
  Storage waiting_;
  ports::InferToken token_;
  bool gone_ = false;
  bool ended_ = false;
};

}  // namespace

Method infer_method() {
  return {.begin =
              [](const std::shared_ptr<Call>& call) { std::make_shared<InferCall>(call)->begin(); },
          .large = true};
}

}  // namespace baton::adapters::grpc_api
