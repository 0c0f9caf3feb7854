// p50 of the add model over gRPC on one connection, over p50 of a minimal callback server that
// answers with as many bytes plus the bare Run.

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>

#include "adapters/onnx/testing/onnx_writer.h"
#include "baton_inference.grpc.pb.h"
#include "support/bare_run.h"
#include "support/child.h"
#include "support/overhead.h"
#include "support/server_process.h"

namespace {

using grpc::ByteBuffer;
using Service = inference::GRPCInferenceService;

const size_t kAnswerBytes = 184;  // of the add model; checked against the server's answer

class Echo final : public Service::WithRawCallbackMethod_ModelInfer<Service::Service> {
 public:
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context, const ByteBuffer*,
                                       ByteBuffer* response) override {
    const grpc::Slice slice(std::string(kAnswerBytes, 'x'));
    ByteBuffer bytes(&slice, 1);
    response->Swap(&bytes);
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

template <class Announce>
void serve_echo(Announce announce) {
  Echo service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (server == nullptr || !announce(static_cast<uint16_t>(port))) return;
  server->Wait();
}

class Client {
 public:
  explicit Client(uint16_t port)
      : channel_(grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                     grpc::InsecureChannelCredentials())),
        method_("/inference.GRPCInferenceService/ModelInfer", nullptr,
                grpc::internal::RpcMethod::NORMAL_RPC) {}

  size_t ask(const ByteBuffer& request) {
    grpc::ClientContext context;
    ByteBuffer response;
    const grpc::Status status = grpc::internal::BlockingUnaryCall<ByteBuffer, ByteBuffer>(
        channel_.get(), method_, &context, request, &response);
    if (!status.ok()) bench::die(status.error_message());
    return response.Length();
  }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  grpc::internal::RpcMethod method_;
};

ByteBuffer add_request() {
  inference::ModelInferRequest message;
  message.set_model_name("add");
  for (const char* name : {"INPUT0", "INPUT1"}) {
    auto* input = message.add_inputs();
    input->set_name(name);
    input->set_datatype("INT32");
    input->add_shape(1);
    input->add_shape(16);
    message.add_raw_input_contents(std::string(64, '\1'));
  }
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

}  // namespace

int main(int argc, char** argv) {
  bench::serve_if_child(argc, argv, [](auto announce) { serve_echo(announce); });
  bench::stay_on_one_cpu();
  const bench::ServingChild echo_server;
  const std::string model = baton::adapters::onnx::testing::add_sub_model();
  const bench::TemporaryFolder repository;
  bench::write_model(repository.path(), "add", model, "max_batch_size: 8\ndynamic_batching {}\n");
  const bench::ServerProcess server(repository.path());

  const ByteBuffer request = add_request();
  Client to_server(server.grpc_port());
  Client to_echo(echo_server.port());
  const size_t answered = to_server.ask(request);
  if (answered != kAnswerBytes) bench::die("the answer has " + std::to_string(answered) + " bytes");
  to_echo.ask(request);
  bench::BareRun bare(model);
  const auto overhead = bench::measure_overhead([&] { to_server.ask(request); },
                                                [&] { to_echo.ask(request); }, [&] { bare.run(); });
  bench::print(bench::overhead_figure("grpc_overhead", 1.3, overhead));
}
