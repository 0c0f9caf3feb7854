#include "adapters/grpc/inference_service.h"

#include "adapters/grpc/logging_methods.h"
#include "adapters/grpc/shared_memory_methods.h"
#include "adapters/grpc/statistics_methods.h"
#include "adapters/grpc/trace_methods.h"
#include "baton_inference.pb.h"
#include "protocol/oip_proto/infer_message.h"

namespace baton::adapters::grpc_api {
namespace {

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

Status server_live(Call&, const inference::ServerLiveRequest&,
                   inference::ServerLiveResponse& response) {
  response.set_live(true);  // a worker's loop turns
  return Status();
}

Status server_ready(Call& call, const inference::ServerReadyRequest&,
                    inference::ServerReadyResponse& response) {
  response.set_ready(call.worker().front->server_ready());
  return Status();
}

Status model_ready(Call& call, const inference::ModelReadyRequest& request,
                   inference::ModelReadyResponse& response) {
  const auto version = protocol::oip_proto::parse_version(request.version());
  if (!version.has_value()) return call.refused(request.name(), version.error());
  response.set_ready(call.worker().front->model_ready(request.name(), *version).ready);
  return Status();
}

Status server_metadata(Call& call, const inference::ServerMetadataRequest&,
                       inference::ServerMetadataResponse& response) {
  const ports::ServerDescription server = call.worker().front->server();
  response.set_name(server.name);
  response.set_version(server.version);
  for (const std::string& extension : server.extensions) response.add_extensions(extension);
  return Status();
}

Status model_metadata(Call& call, const inference::ModelMetadataRequest& request,
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
  return Status();
}

Status model_config(Call& call, const inference::ModelConfigRequest& request,
                    inference::ModelConfigResponse& response) {
  const auto version = protocol::oip_proto::parse_version(request.version());
  if (!version.has_value()) return call.refused(request.name(), version.error());
  const auto config = call.worker().front->model_config(request.name(), *version);
  if (!config.has_value()) return call.refused(request.name(), config.error());
  if (!response.mutable_config()->ParseFromString(*config)) {
    return call.refused(request.name(),
                        {EndReason::kEngineFailed, "the configuration is broken", {}});
  }
  return Status();
}

}  // namespace

void add_inference_methods(MethodTable& methods) {
  using namespace inference;
  // Health is answered without a key: probes have none.
  methods.offered[inference_method("ServerLive")] =
      unary<ServerLiveRequest, ServerLiveResponse>(server_live, false);
  methods.offered[inference_method("ServerReady")] =
      unary<ServerReadyRequest, ServerReadyResponse>(server_ready, false);
  methods.offered[inference_method("ModelReady")] =
      unary<ModelReadyRequest, ModelReadyResponse>(model_ready);
  methods.offered[inference_method("ServerMetadata")] =
      unary<ServerMetadataRequest, ServerMetadataResponse>(server_metadata);
  methods.offered[inference_method("ModelMetadata")] =
      unary<ModelMetadataRequest, ModelMetadataResponse>(model_metadata);
  methods.offered[inference_method("ModelConfig")] =
      unary<ModelConfigRequest, ModelConfigResponse>(model_config);
  add_statistics_methods(methods);
  add_shared_memory_methods(methods);
  add_logging_methods(methods);
  add_trace_methods(methods);
  add_repository_methods(methods);
  for (const auto& [method, what] : std::map<std::string, std::string>{
           {"CudaSharedMemoryRegister", "CUDA shared memory"},
       }) {
    methods.not_offered[inference_method(method)] = what;
  }
}

}  // namespace baton::adapters::grpc_api
