#include "adapters/grpc/inference_service.h"

#include "adapters/grpc/infer_call.h"
#include "adapters/grpc/status.h"
#include "baton_inference.grpc.pb.h"

namespace baton::adapters::grpc_api {
namespace {

using Rpc = inference::GRPCInferenceService;
using Context = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;
using grpc::ByteBuffer;

// The methods that are offered, ModelInfer on raw bytes. The others are callback methods as well,
// so that the library starts no threads for synchronous ones.
using QueryMethods = Rpc::WithCallbackMethod_ServerLive<Rpc::WithCallbackMethod_ServerReady<
    Rpc::WithCallbackMethod_ModelReady<Rpc::WithCallbackMethod_ServerMetadata<
        Rpc::WithCallbackMethod_ModelMetadata<Rpc::WithCallbackMethod_ModelConfig<
            Rpc::WithRawCallbackMethod_ModelInfer<Rpc::Service>>>>>>>;
using SharedMemoryMethods = Rpc::WithRawCallbackMethod_SystemSharedMemoryStatus<
    Rpc::WithRawCallbackMethod_SystemSharedMemoryRegister<
        Rpc::WithRawCallbackMethod_SystemSharedMemoryUnregister<
            Rpc::WithRawCallbackMethod_CudaSharedMemoryStatus<
                Rpc::WithRawCallbackMethod_CudaSharedMemoryRegister<
                    Rpc::WithRawCallbackMethod_CudaSharedMemoryUnregister<QueryMethods>>>>>>;
using AllMethods =
    Rpc::WithRawCallbackMethod_RepositoryIndex<Rpc::WithRawCallbackMethod_RepositoryModelLoad<
        Rpc::WithRawCallbackMethod_RepositoryModelUnload<Rpc::WithRawCallbackMethod_ModelStatistics<
            Rpc::WithRawCallbackMethod_TraceSetting<Rpc::WithRawCallbackMethod_LogSettings<
                Rpc::WithRawCallbackMethod_ModelStreamInfer<SharedMemoryMethods>>>>>>>;

grpc::Status not_offered(const char* what) {
  return {grpc::StatusCode::UNIMPLEMENTED, std::string(what) + " is not offered by this server"};
}

// Answers UNIMPLEMENTED to every method that AllMethods lists and the service does not override.
class Unoffered : public AllMethods {
 public:
  Reactor* RepositoryIndex(Context* context, const ByteBuffer*, ByteBuffer*) override {
    return say(context, "the repository index");
  }
  Reactor* RepositoryModelLoad(Context* context, const ByteBuffer*, ByteBuffer*) override {
    return say(context, "loading of models by clients");
  }
  Reactor* RepositoryModelUnload(Context* context, const ByteBuffer*, ByteBuffer*) override {
    return say(context, "unloading of models by clients");
  }
  Reactor* ModelStatistics(Context* context, const ByteBuffer*, ByteBuffer*) override {
    return say(context, "the statistics extension");
  }
  Reactor* TraceSetting(Context* context, const ByteBuffer*, ByteBuffer*) override {
    return say(context, "the trace extension");
  }
  Reactor* LogSettings(Context* context, const ByteBuffer*, ByteBuffer*) override {
    return say(context, "the logging extension");
  }
  Reactor* SystemSharedMemoryStatus(Context* context, const ByteBuffer*, ByteBuffer*) override {
    return say(context, "system shared memory");
  }
  Reactor* SystemSharedMemoryRegister(Context* context, const ByteBuffer*, ByteBuffer*) override {
    return say(context, "system shared memory");
  }
  Reactor* SystemSharedMemoryUnregister(Context* context, const ByteBuffer*, ByteBuffer*) override {
    return say(context, "system shared memory");
  }
  Reactor* CudaSharedMemoryStatus(Context* context, const ByteBuffer*, ByteBuffer*) override {
    return say(context, "CUDA shared memory");
  }
  Reactor* CudaSharedMemoryRegister(Context* context, const ByteBuffer*, ByteBuffer*) override {
    return say(context, "CUDA shared memory");
  }
  Reactor* CudaSharedMemoryUnregister(Context* context, const ByteBuffer*, ByteBuffer*) override {
    return say(context, "CUDA shared memory");
  }
  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* ModelStreamInfer(Context*) override {
    class Ended final : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer> {
     public:
      Ended() { Finish(not_offered("streaming inference")); }
      void OnDone() override { delete this; }
    };
    return new Ended;
  }

 private:
  static Reactor* say(Context* context, const char* what) {
    Reactor* reactor = context->DefaultReactor();
    reactor->Finish(not_offered(what));
    return reactor;
  }
};

void add_tensors(
    const std::vector<TensorSpec>& specs,
    google::protobuf::RepeatedPtrField<inference::ModelMetadataResponse::TensorMetadata>* tensors) {
  for (const TensorSpec& spec : specs) {
    auto* tensor = tensors->Add();
    tensor->set_name(spec.name);
    tensor->set_datatype(std::string(data_type_name(spec.type)));
    for (int64_t dim : spec.dims) tensor->add_shape(dim);
  }
}

class InferenceService final : public Unoffered {
 public:
  InferenceService(Workers& workers, const ports::Clock& clock)
      : workers_(workers), clock_(clock) {}

  Reactor* ModelInfer(Context* context, const ByteBuffer* request, ByteBuffer* response) override {
    // The library hands out its own, mutable buffer; emptying it early halves the memory.
    return InferCall::start(context, const_cast<ByteBuffer*>(request), response, workers_.next(),
                            clock_);
  }

  Reactor* ServerLive(Context* context, const inference::ServerLiveRequest*,
                      inference::ServerLiveResponse* response) override {
    return ask(context, [response](ports::InferenceFront&) {
      response->set_live(true);  // a worker's loop turns
      return grpc::Status::OK;
    });
  }

  Reactor* ServerReady(Context* context, const inference::ServerReadyRequest*,
                       inference::ServerReadyResponse* response) override {
    return ask(context, [response](ports::InferenceFront& front) {
      response->set_ready(front.server_ready());
      return grpc::Status::OK;
    });
  }

  Reactor* ModelReady(Context* context, const inference::ModelReadyRequest* request,
                      inference::ModelReadyResponse* response) override {
    return ask(context, [=](ports::InferenceFront& front) {
      const auto version = protocol::oip_proto::parse_version(request->version());
      if (!version.has_value()) return refuse(*context, version.error());
      response->set_ready(front.model_ready(request->name(), *version).ready);
      return grpc::Status::OK;
    });
  }

  Reactor* ServerMetadata(Context* context, const inference::ServerMetadataRequest*,
                          inference::ServerMetadataResponse* response) override {
    return ask(context, [response](ports::InferenceFront& front) {
      const ports::ServerDescription server = front.server();
      response->set_name(server.name);
      response->set_version(server.version);
      for (const std::string& extension : server.extensions) response->add_extensions(extension);
      return grpc::Status::OK;
    });
  }

  Reactor* ModelMetadata(Context* context, const inference::ModelMetadataRequest* request,
                         inference::ModelMetadataResponse* response) override {
    return ask(context, [=](ports::InferenceFront& front) {
      const auto version = protocol::oip_proto::parse_version(request->version());
      if (!version.has_value()) return refuse(*context, version.error());
      const auto model = front.model(caller_of(*context), request->name(), *version);
      if (!model.has_value()) return refuse(*context, model.error());
      response->set_name(model->name);
      for (const std::string& number : model->versions) response->add_versions(number);
      response->set_platform(model->platform);
      add_tensors(model->inputs, response->mutable_inputs());
      add_tensors(model->outputs, response->mutable_outputs());
      return grpc::Status::OK;
    });
  }

  Reactor* ModelConfig(Context* context, const inference::ModelConfigRequest* request,
                       inference::ModelConfigResponse* response) override {
    return ask(context, [=](ports::InferenceFront& front) {
      const auto version = protocol::oip_proto::parse_version(request->version());
      if (!version.has_value()) return refuse(*context, version.error());
      const auto config = front.model_config(caller_of(*context), request->name(), *version);
      if (!config.has_value()) return refuse(*context, config.error());
      if (!response->mutable_config()->ParseFromString(*config)) {
        return refuse(*context, {EndReason::kEngineFailed, "the configuration is broken", {}});
      }
      return grpc::Status::OK;
    });
  }

 private:
  // Runs `query` on a worker; request, response and context live until the call is finished.
  template <class Query>
  Reactor* ask(Context* context, Query query) {
    Reactor* reactor = context->DefaultReactor();
    const GrpcWorker& worker = workers_.next();
    worker.executor->post([reactor, front = worker.front, query = std::move(query)] {
      reactor->Finish(query(*front));
    });
    return reactor;
  }

  Workers& workers_;
  const ports::Clock& clock_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_inference_service(Workers& workers, const ports::Clock& clock) {
  return std::make_unique<InferenceService>(workers, clock);
}

}  // namespace baton::adapters::grpc_api
