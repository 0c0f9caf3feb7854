#include "adapters/grpc/infer_call.h"

#include <google/protobuf/arena.h>

#include <deque>
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

// How one inference ended, for the message that answers it.
struct Outcome {
  std::string id;  // the client's own
  Status status;   // OK: `parts` are a ModelInferResponse
  std::vector<MessagePart> parts;
  Storage kept;  // what they look at
};

// One inference of a call. On the worker.
class InferRun final : public std::enable_shared_from_this<InferRun> {
 public:
  using Done = std::move_only_function<void(Outcome)>;

  // `done` is called once, perhaps from within begin(), and not after gone().
  InferRun(std::shared_ptr<Call> call, RequestContext context, bool streamed, Done done)
      : call_(std::move(call)),
        context_(std::move(context)),
        streamed_(streamed),
        done_(std::move(done)) {}

  void begin(std::string message) {
    const GrpcWorker& worker = call_->worker();
    if (worker.readers == nullptr || message.size() <= kMostBytesOnWorker) {
      return start(read(message));
    }
    // Until it is read it counts among what is being received.
    waiting_ = call_->context().receiving->lend(message.size());
    if (waiting_ == nullptr) {
      ReadRequest refused;
      refused.request = fail(Refusal{EndReason::kOverloaded,
                                     "too many large messages wait to be read", Duration::s(1)});
      return start(std::move(refused));
    }
    worker.readers->run(
        [self = shared_from_this(), bytes = std::move(message)](ports::Cancellation&) mutable {
          auto request = self->read(std::exchange(bytes, {}));
          self->call_->worker().loop->post([self, request = std::move(request)]() mutable {
            self->waiting_ = nullptr;
            self->start(std::move(request));
          });
        });
  }

  // The client has gone.
  void gone() {
    gone_ = true;
    // The request's own deadline ends it.
    if (call_->context().clock.now() + kDeadlineSlack >= deadline_) return;
    if (!ended_ && token_ != ports::InferToken()) call_->worker().front->cancel(token_);
  }

 private:
  // Any thread: touches nothing that changes meanwhile but `context_`, which is the reader's.
  ReadRequest read(const std::string& bytes) {
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
      return end(status_of(read.request.error()));
    }
    token_ =
        front.infer(call_->caller(), *std::move(read.request),
                    [self = shared_from_this()](auto answer) { self->take(std::move(answer)); });
  }

  void take(Result<ports::InferAnswer, Refusal> answer) {
    if (answer.has_value()) return encode(*std::move(answer));
    end(status_of(answer.error(), call_->context().clock.now() >= deadline_));
  }

  void encode(ports::InferAnswer answer) {
    const auto encoded = protocol::oip_proto::encode_infer_response(
        answer.result, {answer.model, answer.version, id_, streamed_});
    Outcome outcome;
    // Keeps the result alive until the last of it is sent, and counted among the answers that wait.
    outcome.kept = std::make_shared<const std::vector<Storage>>(std::move(answer.result.storage));
    outcome.parts.resize(1);
    outcome.parts.back().text = encoded.head;
    for (const auto& raw : encoded.raws) {
      outcome.parts.back().text += raw.prefix;
      const std::string_view bytes = as_chars(raw.bytes);
      if (bytes.size() < kCopyBytes) {
        outcome.parts.back().text += bytes;
        continue;
      }
      outcome.parts.back().view = bytes;
      outcome.parts.back().keep = outcome.kept;
      outcome.parts.emplace_back();
    }
    end(std::move(outcome));
  }

  void end(Status status) {
    Outcome outcome;
    outcome.status = std::move(status);
    end(std::move(outcome));
  }
  void end(Outcome outcome) {
    ended_ = true;
    outcome.id = id_;
    if (auto done = std::exchange(done_, nullptr)) done(std::move(outcome));
  }

  const std::shared_ptr<Call> call_;
  RequestContext context_;
  const bool streamed_;
  Done done_;
  std::string id_;
  Instant deadline_ = Instant::never();
  Storage waiting_;
  ports::InferToken token_;
  bool gone_ = false;
  bool ended_ = false;
};

void infer(const std::shared_ptr<Call>& call) {
  const auto run =
      std::make_shared<InferRun>(call, call->request_context(), false, [call](Outcome outcome) {
        if (!outcome.status.ok()) return call->finish(outcome.status);
        outcome.parts.back().keep = std::move(outcome.kept);
        call->answer(std::move(outcome.parts));
      });
  call->on_cancel([weak = std::weak_ptr(run)] {
    if (const auto self = weak.lock()) self->gone();
  });
  run->begin(call->take_request());
}

// One ModelStreamInfer call: each message is an inference of its own; their answers leave in the
// order in which they were asked for.
class InferStream final : public std::enable_shared_from_this<InferStream> {
 public:
  explicit InferStream(std::shared_ptr<Call> call) : call_(std::move(call)) {
    // A client may want an error to end the stream, as a status.
    ends_at_error_ = call_->metadata().find("triton_grpc_error") == "true";
  }

  void begin() {
    call_->on_messages(
        [self = shared_from_this()](std::string bytes) { self->ask(std::move(bytes)); },
        [self = shared_from_this()] {
          self->asked_all_ = true;
          self->send();
        });
    call_->on_cancel([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->gone();
    });
  }

 private:
  struct Asked {
    std::shared_ptr<InferRun> run;
    std::optional<Outcome> outcome;
  };

  void ask(std::string message) {
    const auto asked = std::make_shared<Asked>();
    asked_.push_back(asked);
    // Its answer may come at once, so this is decided first.
    if (asked_.size() >= kMostAsked && !std::exchange(paused_, true)) call_->pause();
    RequestContext context = call_->request_context();
    context.arrival = call_->context().clock.now();
    context.bytes = message.size();
    asked->run = std::make_shared<InferRun>(call_, std::move(context), true,
                                            [weak = weak_from_this(), asked](Outcome outcome) {
                                              asked->run = nullptr;
                                              asked->outcome = std::move(outcome);
                                              if (const auto self = weak.lock()) self->send();
                                            });
    const auto run = asked->run;  // the answer lets go of it
    run->begin(std::move(message));
  }

  void send() {
    if (sending_ || call_->over()) return;
    if (asked_.empty()) {
      if (asked_all_) call_->finish({});
      return;
    }
    auto& outcome = asked_.front()->outcome;
    if (!outcome) return;
    if (!outcome->status.ok() && ends_at_error_) {
      const Status status = outcome->status;
      gone();
      return call_->finish(status);
    }
    sending_ = true;
    call_->write(reply(*std::move(outcome)), [self = shared_from_this()](bool ok) {
      self->sending_ = false;
      self->asked_.pop_front();
      if (!ok) return;
      if (self->asked_.size() <= kMostAsked / 2 && std::exchange(self->paused_, false)) {
        self->call_->resume();
      }
      self->send();
    });
  }

  static std::vector<MessagePart> reply(Outcome outcome) {
    if (!outcome.status.ok()) {
      inference::ModelStreamInferResponse response;
      response.set_error_message(outcome.status.message);
      response.mutable_infer_response()->set_id(outcome.id);
      return message_of(response.SerializeAsString());
    }
    size_t size = 0;
    for (const MessagePart& part : outcome.parts) size += part.text.size() + part.view.size();
    outcome.parts.front().text.insert(0, protocol::oip_proto::stream_prefix(size));
    return std::move(outcome.parts);
  }

  void gone() {
    for (const auto& asked : asked_) {
      if (const auto run = asked->run) run->gone();
    }
  }

  static constexpr size_t kMostAsked = 256;  // then the client is held back

  const std::shared_ptr<Call> call_;
  std::deque<std::shared_ptr<Asked>> asked_;
  bool ends_at_error_ = false;
  bool sending_ = false;
  bool paused_ = false;
  bool asked_all_ = false;
};

}  // namespace

Method infer_method() {
  return {.begin = infer, .large = true};
}

Method stream_infer_method() {
  return {
      .begin =
          [](const std::shared_ptr<Call>& call) { std::make_shared<InferStream>(call)->begin(); },
      .large = true,
      .streams = true};
}

}  // namespace baton::adapters::grpc_api
