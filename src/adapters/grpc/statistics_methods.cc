#include "adapters/grpc/statistics_methods.h"

#include "baton_inference.pb.h"
#include "protocol/oip_proto/infer_message.h"
#include "protocol/oip_proto/statistics.h"

namespace baton::adapters::grpc_api {
namespace {

Status model_statistics(Call& call, const inference::ModelStatisticsRequest& request,
                        inference::ModelStatisticsResponse& response) {
  const auto version = protocol::oip_proto::parse_version(request.version());
  if (!version.has_value()) return call.refused(request.name(), version.error());
  const auto models = call.worker().front->statistics(request.name(), *version);
  if (!models.has_value()) return call.refused(request.name(), models.error());
  protocol::oip_proto::encode_statistics(*models, response);
  return Status();
}

}  // namespace

void add_statistics_methods(MethodTable& methods) {
  methods.offered[inference_method("ModelStatistics")] =
      unary<inference::ModelStatisticsRequest, inference::ModelStatisticsResponse>(
          model_statistics);
}

}  // namespace baton::adapters::grpc_api
