#pragma once
// Internal to this room: one ModelInfer call.

#include <memory>
#include <string>

#include "adapters/grpc/call_queue.h"
#include "adapters/grpc/inference_service.h"
#include "adapters/grpc/workers.h"
#include "protocol/oip_proto/infer_message.h"

namespace baton::adapters::grpc_api {

// Where calls come from. All of it outlives them.
struct InferSource {
  InferMethod& method;
  CallQueue& queue;
  Workers& workers;
  const ports::Clock& clock;
};

// Lives until the library is done with it and the worker has let go of it. Members below the line
// belong to the worker.
class InferCall final : public WatchedWrite, public std::enable_shared_from_this<InferCall> {
 public:
  // Asks the library for one call, and for the next with each that comes.
  static void await(const InferSource& source);

  explicit InferCall(const InferSource& source);
  ~InferCall();

 private:
  // On the queue's thread.
  void arrived(bool ok);
  void has_finished(bool) { worker_.writes->sent(*this); }
  void has_ended(bool ok);

  [[nodiscard]] Result<std::shared_ptr<InferRequest>, Refusal> decode(RequestContext& context,
                                                                      std::string& model);
  void begin();
  // `lend`: on the queue's thread, which may take the worker's turn.
  void read(RequestContext context, bool lend);
  void end(const grpc::Status& status);
  void infer(std::shared_ptr<InferRequest> request);
  void finish(Result<ports::InferAnswer, Refusal> answer);
  void write(ports::InferAnswer answer);
  std::shared_ptr<WatchedWrite> keep() override { return shared_from_this(); }
  void cut_off() override { context_.TryCancel(); }

  const InferSource source_;
  const ServedWorker worker_;
  grpc::ServerContext context_;
  grpc::ByteBuffer message_;
  InferWriter writer_{&context_};
  bool entered_ = false;
  Operation<InferCall> arrival_{&InferCall::arrived};
  Operation<InferCall> finishing_{&InferCall::has_finished};
  Operation<InferCall> ending_{&InferCall::has_ended};
  Instant deadline_ = Instant::never();
  ports::Caller caller_;
  std::string client_id_;

  // ---- on the worker
  ports::InferToken token_;
  bool cancelled_ = false;
  bool finished_ = false;
  Storage held_;  // until the library has sent the answer
};

}  // namespace baton::adapters::grpc_api
