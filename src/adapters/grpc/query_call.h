#pragma once
// Internal to this room: one call of any method but ModelInfer.

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "adapters/grpc/call_queue.h"
#include "adapters/grpc/status.h"
#include "adapters/grpc/workers.h"
#include "ports/clock.h"

namespace baton::adapters::grpc_api {

class QueryCall;

// What a method does with its first message. On the worker; it finishes the call, then or later.
using Method = std::function<void(const std::shared_ptr<QueryCall>& call)>;

// By full name, as "/package.Service/Method".
struct MethodTable {
  std::map<std::string, Method, std::less<>> offered;
  std::map<std::string, std::string, std::less<>> not_offered;  // what it would have done
};

// Where calls come from. All of it outlives them.
struct QuerySource {
  grpc::AsyncGenericService& service;
  CallQueue& queue;
  Workers& workers;
  const MethodTable& methods;
  const ports::Clock& clock;
};

// Lives until the library is done with it and the worker has let go of it.
class QueryCall final : public std::enable_shared_from_this<QueryCall> {
 public:
  // Asks the library for one call, and for the next with each that comes.
  static void await(const QuerySource& source);

  explicit QueryCall(const QuerySource& source);
  ~QueryCall();

  // ---- on the worker
  [[nodiscard]] grpc::ServerContext& context() { return context_; }
  [[nodiscard]] grpc::ByteBuffer& request() { return request_; }
  [[nodiscard]] const GrpcWorker& worker() const { return worker_; }
  // Sends one message of several; `written` says on the worker whether it left. One at a time.
  void write(const grpc::ByteBuffer& message, std::move_only_function<void(bool)> written);
  // Sends the only message and ends the call. This or finish(), once.
  void answer(const grpc::ByteBuffer& message);
  void finish(const grpc::Status& status);
  // The status of a refusal, which it counts.
  [[nodiscard]] grpc::Status refused(std::string_view model, const Refusal& refusal);
  void refuse_counted(const Refusal& refusal) { finish(refused("", refusal)); }
  // Called when the client has gone; at once if it has.
  void on_cancel(std::move_only_function<void()> action);

 private:
  // On the queue's thread.
  void arrived(bool ok);
  void has_read(bool ok);
  void has_written(bool ok);
  void has_finished(bool) {}
  void has_ended(bool ok);
  void refuse_on_worker(Refusal refusal);

  const QuerySource source_;
  const GrpcWorker worker_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::ByteBuffer request_;
  const Method* method_ = nullptr;
  bool entered_ = false;
  Operation<QueryCall> arrival_{&QueryCall::arrived};
  Operation<QueryCall> reading_{&QueryCall::has_read};
  Operation<QueryCall> writing_{&QueryCall::has_written};
  Operation<QueryCall> finishing_{&QueryCall::has_finished};
  Operation<QueryCall> ending_{&QueryCall::has_ended};

  // ---- on the worker
  std::move_only_function<void(bool)> written_;
  std::move_only_function<void()> cancelled_;
  bool gone_ = false;
};

template <class Message>
bool parse(grpc::ByteBuffer& bytes, Message& message) {
  grpc::ProtoBufferReader reader(&bytes);
  return reader.status().ok() && message.ParseFromZeroCopyStream(&reader);
}

template <class Message>
grpc::ByteBuffer serialize(const Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

// A method with one message each way.
template <class Request, class Response, class Ask>
Method unary(Ask ask) {
  return [ask](const std::shared_ptr<QueryCall>& call) {
    Request request;
    if (!parse(call->request(), request)) {
      return call->refuse_counted(
          {EndReason::kInvalid, "the request is not a " + request.GetTypeName(), {}});
    }
    Response response;
    const grpc::Status status = ask(*call, request, response);
    if (!status.ok()) return call->finish(status);
    call->answer(serialize(response));
  };
}

}  // namespace baton::adapters::grpc_api
