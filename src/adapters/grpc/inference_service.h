#pragma once
// Internal to this room: the methods of the Open Inference Protocol's service.

#include <grpcpp/impl/codegen/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>

#include "adapters/grpc/query_call.h"

namespace baton::adapters::grpc_api {

using InferWriter = grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>;

// ModelInfer, registered by its name so that a call comes together with its message.
class InferMethod {
 public:
  virtual ~InferMethod() = default;
  [[nodiscard]] virtual grpc::Service& service() = 0;  // for the server's builder
  virtual void request(grpc::ServerContext* context, grpc::ByteBuffer* message, InferWriter* writer,
                       grpc::ServerCompletionQueue* queue, void* tag) = 0;
};
[[nodiscard]] std::unique_ptr<InferMethod> make_infer_method();

// All others, those that are not offered included.
void add_inference_methods(MethodTable& methods);

}  // namespace baton::adapters::grpc_api
