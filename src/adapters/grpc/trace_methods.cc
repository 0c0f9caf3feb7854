#include "adapters/grpc/trace_methods.h"

#include "baton_inference.pb.h"
#include "protocol/oip/trace_settings.h"

namespace baton::adapters::grpc_api {
namespace {

Result<void, Refusal> update(const inference::TraceSettingRequest& request,
                             ports::TraceControl& traces, const std::string& file) {
  TraceOverrides overrides = traces.overrides(request.model_name());
  for (const auto& [name, value] : request.settings()) {
    const std::vector<std::string> texts(value.value().begin(), value.value().end());
    BATON_TRY(protocol::oip::set_trace_value(name, texts, file, overrides));
  }
  BATON_TRY(protocol::oip::check_trace_overrides(request.model_name(), overrides));
  traces.apply(request.model_name(), overrides);
  return {};
}

Status trace_setting(Call& call, const inference::TraceSettingRequest& request,
                     inference::TraceSettingResponse& response) {
  const std::string& model = request.model_name();
  ports::InferenceFront& front = *call.worker().front;
  ports::TraceControl* traces = front.trace_control();
  if (traces == nullptr) return call.refused(model, protocol::oip::traces_not_offered());
  if (!model.empty() && !front.model_ready(model, std::nullopt).known) {
    return call.refused(model, {EndReason::kNotFound, "unknown model \"" + model + "\"", {}});
  }
  const std::string file = traces->file();
  if (!request.settings().empty()) {
    const auto updated = update(request, *traces, file);
    if (!updated.has_value()) return call.refused(model, updated.error());
  }
  auto& values = *response.mutable_settings();
  for (const auto& value : protocol::oip::trace_values(traces->settings(model), file)) {
    auto& texts = *values[std::string(value.name)].mutable_value();
    for (const std::string& text : value.texts) texts.Add(std::string(text));
  }
  return Status();
}

}  // namespace

void add_trace_methods(MethodTable& methods) {
  methods.offered[inference_method("TraceSetting")] =
      unary<inference::TraceSettingRequest, inference::TraceSettingResponse>(trace_setting);
}

}  // namespace baton::adapters::grpc_api
