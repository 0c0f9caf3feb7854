#include "adapters/grpc/inference_service.h"

#include "adapters/grpc/status.h"
#include "baton_inference.grpc.pb.h"
#include "protocol/oip_proto/infer_message.h"

namespace baton::adapters::grpc_api {
namespace {

using Rpc = inference::GRPCInferenceService;

// The service with ModelInfer on raw bytes. The others go to the generic service.
using Queries = Rpc::WithGenericMethod_ServerLive<
    Rpc::WithGenericMethod_ServerReady<Rpc::WithGenericMethod_ModelReady<
        Rpc::WithGenericMethod_ServerMetadata<Rpc::WithGenericMethod_ModelMetadata<
            Rpc::WithGenericMethod_ModelConfig<Rpc::WithRawMethod_ModelInfer<Rpc::Service>>>>>>>;
using SharedMemory = Rpc::WithGenericMethod_SystemSharedMemoryStatus<
    Rpc::WithGenericMethod_SystemSharedMemoryRegister<
        Rpc::WithGenericMethod_SystemSharedMemoryUnregister<
            Rpc::WithGenericMethod_CudaSharedMemoryStatus<
                Rpc::WithGenericMethod_CudaSharedMemoryRegister<
                    Rpc::WithGenericMethod_CudaSharedMemoryUnregister<Queries>>>>>>;
using AllMethods =
    Rpc::WithGenericMethod_RepositoryIndex<Rpc::WithGenericMethod_RepositoryModelLoad<
        Rpc::WithGenericMethod_RepositoryModelUnload<Rpc::WithGenericMethod_ModelStatistics<
            Rpc::WithGenericMethod_TraceSetting<Rpc::WithGenericMethod_LogSettings<
                Rpc::WithGenericMethod_ModelStreamInfer<SharedMemory>>>>>>>;

class RegisteredInfer final : public InferMethod {
 public:
  grpc::Service& service() override { return service_; }
  void request(grpc::ServerContext* context, grpc::ByteBuffer* message, InferWriter* writer,
               grpc::ServerCompletionQueue* queue, void* tag) override {
    service_.RequestModelInfer(context, message, writer, queue, queue, tag);
  }

 private:
  AllMethods service_;
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

grpc::Status server_live(QueryCall&, const inference::ServerLiveRequest&,
                         inference::ServerLiveResponse& response) {
  response.set_live(true);  // a worker's loop turns
  return grpc::Status::OK;
}

grpc::Status server_ready(QueryCall& call, const inference::ServerReadyRequest&,
                          inference::ServerReadyResponse& response) {
  response.set_ready(call.worker().front->server_ready());
  return grpc::Status::OK;
}

grpc::Status model_ready(QueryCall& call, const inference::ModelReadyRequest& request,
                         inference::ModelReadyResponse& response) {
  const auto version = protocol::oip_proto::parse_version(request.version());
  if (!version.has_value()) return call.refused(request.name(), version.error());
  response.set_ready(call.worker().front->model_ready(request.name(), *version).ready);
  return grpc::Status::OK;
}

grpc::Status server_metadata(QueryCall& call, const inference::ServerMetadataRequest&,
                             inference::ServerMetadataResponse& response) {
  const ports::ServerDescription server = call.worker().front->server();
  response.set_name(server.name);
  response.set_version(server.version);
  for (const std::string& extension : server.extensions) response.add_extensions(extension);
  return grpc::Status::OK;
}

grpc::Status model_metadata(QueryCall& call, const inference::ModelMetadataRequest& request,
                            inference::ModelMetadataResponse& response) {
  const auto version = protocol::oip_proto::parse_version(request.version());
  if (!version.has_value()) return call.refused(request.name(), version.error());
  const auto model = call.worker().front->model(request.name(), *version);
  if (!model.has_value()) return call.refused(request.name(), model.error());
  response.set_name(model->name);
  for (const std::string& number : model->versions) response.add_versions(number);
  response.set_platform(model->platform);
  add_tensors(model->inputs, response.mutable_inputs());
  add_tensors(model->outputs, response.mutable_outputs());
  return grpc::Status::OK;
}

grpc::Status model_config(QueryCall& call, const inference::ModelConfigRequest& request,
                          inference::ModelConfigResponse& response) {
  const auto version = protocol::oip_proto::parse_version(request.version());
  if (!version.has_value()) return call.refused(request.name(), version.error());
  const auto config = call.worker().front->model_config(request.name(), *version);
  if (!config.has_value()) return call.refused(request.name(), config.error());
  if (!response.mutable_config()->ParseFromString(*config)) {
    return call.refused(request.name(),
                        {EndReason::kEngineFailed, "the configuration is broken", {}});
  }
  return grpc::Status::OK;
}

// A method that only a caller with a key may ask.
Method keyed(Method method) {
  return [method = std::move(method)](const std::shared_ptr<QueryCall>& call) {
    const grpc::ServerContext& context = call->context();
    auto admitted = admit(context, caller_of(context), *call->worker().front);
    if (!admitted.has_value()) return call->refuse_counted(admitted.error());
    method(call);
  };
}

}  // namespace

std::unique_ptr<InferMethod> make_infer_method() {
  return std::make_unique<RegisteredInfer>();
}

void add_inference_methods(MethodTable& methods) {
  using namespace inference;
  const std::string service = "/inference.GRPCInferenceService/";
  // Health is answered without a key: probes have none.
  methods.offered[service + "ServerLive"] =
      unary<ServerLiveRequest, ServerLiveResponse>(server_live);
  methods.offered[service + "ServerReady"] =
      unary<ServerReadyRequest, ServerReadyResponse>(server_ready);
  methods.offered[service + "ModelReady"] =
      keyed(unary<ModelReadyRequest, ModelReadyResponse>(model_ready));
  methods.offered[service + "ServerMetadata"] =
      keyed(unary<ServerMetadataRequest, ServerMetadataResponse>(server_metadata));
  methods.offered[service + "ModelMetadata"] =
      keyed(unary<ModelMetadataRequest, ModelMetadataResponse>(model_metadata));
  methods.offered[service + "ModelConfig"] =
      keyed(unary<ModelConfigRequest, ModelConfigResponse>(model_config));
  for (const auto& [method, what] : std::map<std::string, std::string>{
           {"RepositoryIndex", "the repository index"},
           {"RepositoryModelLoad", "loading of models by clients"},
           {"RepositoryModelUnload", "unloading of models by clients"},
           {"ModelStatistics", "the statistics extension"},
           {"TraceSetting", "the trace extension"},
           {"LogSettings", "the logging extension"},
           {"SystemSharedMemoryStatus", "system shared memory"},
           {"SystemSharedMemoryRegister", "system shared memory"},
           {"SystemSharedMemoryUnregister", "system shared memory"},
           {"CudaSharedMemoryStatus", "CUDA shared memory"},
           {"CudaSharedMemoryRegister", "CUDA shared memory"},
           {"CudaSharedMemoryUnregister", "CUDA shared memory"},
           {"ModelStreamInfer", "streaming inference"},
       }) {
    methods.not_offered[service + method] = what;
  }
}

}  // namespace baton::adapters::grpc_api
