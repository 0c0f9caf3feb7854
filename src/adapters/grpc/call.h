#pragma once
// Internal to this room: one call, and what a method does with it.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/grpc/grpc_server.h"
#include "adapters/grpc/message_encoding.h"
#include "adapters/grpc/refusal_status.h"
#include "base/byte_budget.h"
#include "protocol/grpc_wire/server_session.h"

namespace baton::adapters::grpc_api {

using protocol::grpc_wire::MessagePart;
using protocol::grpc_wire::StreamId;

class Call;

struct Method {
  // What it does with the client's message. On the worker; it finishes the call, then or later.
  std::function<void(const std::shared_ptr<Call>& call)> begin;
  bool keyed = true;   // only a caller with a key may ask; known before a byte of the message
  bool large = false;  // messages up to the server's limit; else 64 KiB: a name and a version
  // It takes several messages: begin() comes before the first and sets what on_messages() says.
  bool streams = false;
};

// The protocol's service: what its methods' names begin with.
inline constexpr std::string_view kInferenceService = "/inference.GRPCInferenceService/";
[[nodiscard]] inline std::string inference_method(std::string_view name) {
  return std::string(kInferenceService) + std::string(name);
}

// By full name, as "/package.Service/Method".
struct MethodTable {
  std::map<std::string, Method, std::less<>> offered;
  std::map<std::string, std::string, std::less<>> not_offered;  // what it would have done
};

// Where calls go: their connection. On the worker.
class CallSink {
 public:
  virtual void send(StreamId stream, std::vector<MessagePart> parts, bool compressed) = 0;
  virtual void finish(StreamId stream, const Status& status) = 0;
  virtual void pause(StreamId stream) = 0;
  virtual void resume(StreamId stream) = 0;

 protected:
  ~CallSink() = default;
};

// What all calls of a worker share. Outlives them.
struct CallContext {
  GrpcWorker worker;
  const ports::Clock& clock;
  size_t message_bytes_max = 0;
  const HeaderPatterns& forward_headers;
  std::shared_ptr<ByteBudget> receiving;  // of messages that are not complete or not read yet
};

// On its worker only, but what is const.
class Call final : public std::enable_shared_from_this<Call> {
 public:
  Call(const CallContext& context, CallSink& sink, StreamId stream,
       std::unique_ptr<protocol::grpc_wire::CallHead> head, std::string peer);

  [[nodiscard]] const Metadata& metadata() const { return head_->metadata; }
  [[nodiscard]] const std::string& path() const { return head_->path; }
  [[nodiscard]] const CallContext& context() const { return context_; }
  [[nodiscard]] const GrpcWorker& worker() const { return context_.worker; }
  [[nodiscard]] const ports::Caller& caller() const { return caller_; }
  [[nodiscard]] Encoding answer_encoding() const { return answer_encoding_; }
  // Arrival, the call's deadline, size, client id, tenant and trace.
  [[nodiscard]] RequestContext request_context() const;
  [[nodiscard]] const std::string& request() const { return request_; }
  [[nodiscard]] std::string take_request() { return std::move(request_); }

  // Sends one message of several; `written` says when it has left, false when the client has gone.
  // One at a time.
  void write(std::vector<MessagePart> message, std::move_only_function<void(bool)> written);
  // Sends the only message and ends the call. This or finish(), once.
  void answer(std::vector<MessagePart> message);
  void finish(const Status& status);
  // The status of a refusal, which it counts.
  [[nodiscard]] Status refused(std::string_view model, const Refusal& refusal);
  void refuse_counted(const Refusal& refusal) { finish(refused("", refusal)); }
  // Called when the client has gone before the call was finished; at once if it has.
  void on_cancel(std::move_only_function<void()> action);

  // Of a method that takes several messages: each of them, and the client's end of them.
  void on_messages(std::move_only_function<void(std::string)> message,
                   std::move_only_function<void()> end);
  // No message comes from now on, until resume().
  void pause();
  void resume();

  // ---- for its connection
  void set_request(std::string message);
  [[nodiscard]] bool has_request() const { return has_request_; }
  // It has been finished, or the client has gone.
  [[nodiscard]] bool over() const { return sink_ == nullptr; }
  void message(std::string bytes);
  void half_closed();
  void sent();
  // The call is over for the client.
  void closed();

 private:
  void dispatch(std::vector<MessagePart> message, bool last);
  void dispatch_packed(std::vector<MessagePart> message, std::optional<MessagePart> packed,
                       bool last);

  const CallContext& context_;
  CallSink* sink_;  // null: the client has gone, or the call is finished
  const StreamId stream_;
  const std::unique_ptr<protocol::grpc_wire::CallHead> head_;
  const Instant arrival_;
  const Encoding answer_encoding_;
  const ports::Caller caller_;
  const std::shared_ptr<const ForwardedHeaders> headers_;
  std::string request_;
  uint64_t request_bytes_ = 0;
  bool has_request_ = false;
  bool gone_ = false;
  std::move_only_function<void(bool)> written_;
  std::move_only_function<void()> cancelled_;
  std::move_only_function<void(std::string)> message_;
  std::move_only_function<void()> messages_end_;
};

// A message that is one text.
[[nodiscard]] std::vector<MessagePart> message_of(std::string text);

template <class Message>
bool parse(const std::string& bytes, Message& message) {
  return message.ParseFromString(bytes);
}

// A method with one message each way.
template <class Request, class Response, class Ask>
Method unary(Ask ask, bool keyed = true) {
  return {.begin =
              [ask](const std::shared_ptr<Call>& call) {
                Request request;
                if (!parse(call->request(), request)) {
                  return call->refuse_counted(
                      {EndReason::kInvalid, "the request is not a " + request.GetTypeName(), {}});
                }
                Response response;
                const Status status = ask(*call, request, response);
                if (!status.ok()) return call->finish(status);
                call->answer(message_of(response.SerializeAsString()));
              },
          .keyed = keyed};
}

}  // namespace baton::adapters::grpc_api
