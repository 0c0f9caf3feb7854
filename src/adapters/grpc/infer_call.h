#pragma once
// Internal to this room: one ModelInfer call.

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>

#include "adapters/grpc/grpc_server.h"
#include "protocol/oip_proto/infer_message.h"

namespace baton::adapters::grpc_api {

// Lives until the library is done with it and the worker has let go of it. OnCancel and OnDone run
// on library threads; members below the line belong to the worker.
class InferCall final : public grpc::ServerUnaryReactor,
                        public std::enable_shared_from_this<InferCall> {
 public:
  // Takes the bytes out of `request`. The answer goes to `response`.
  static grpc::ServerUnaryReactor* start(grpc::CallbackServerContext* context,
                                         grpc::ByteBuffer* request, grpc::ByteBuffer* response,
                                         const GrpcWorker& worker, const ports::Clock& clock);

  InferCall(grpc::CallbackServerContext* context, grpc::ByteBuffer* response,
            const GrpcWorker& worker, const ports::Clock& clock);

 private:
  void OnCancel() override;
  void OnDone() override;
  // The two above only post and let go, so the library may call them where it is, as it does with
  // its own default reactor, instead of waking one of its threads for each.
  bool InternalInlineable() override { return true; }

  [[nodiscard]] Result<std::shared_ptr<InferRequest>, Refusal> decode(grpc::ByteBuffer* bytes,
                                                                      std::string& model);
  void begin(grpc::ByteBuffer* bytes);
  void infer(std::shared_ptr<InferRequest> request);
  void finish(Result<ports::InferAnswer, Refusal> answer);
  void write(ports::InferAnswer answer);

  grpc::CallbackServerContext* context_;
  grpc::ByteBuffer* response_;
  const GrpcWorker worker_;
  const ports::Clock& clock_;
  std::shared_ptr<InferCall> self_;  // until OnDone
  Instant deadline_ = Instant::never();
  std::string client_id_;

  // ---- on the worker
  ports::InferToken token_;
  bool cancelled_ = false;
  bool finished_ = false;
};

}  // namespace baton::adapters::grpc_api
