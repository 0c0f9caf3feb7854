#include "adapters/grpc/logging_methods.h"

#include "baton_inference.pb.h"
#include "protocol/oip/log_settings.h"

namespace baton::adapters::grpc_api {
namespace {

using protocol::oip::LogValue;
using Value = inference::LogSettingsRequest::SettingValue;

LogValue value_of(const Value& value) {
  if (value.has_bool_param()) return value.bool_param();
  if (value.has_uint32_param()) return uint64_t{value.uint32_param()};
  return value.string_param();
}

void fill(const LogSettings& settings, inference::LogSettingsResponse& response) {
  auto& values = *response.mutable_settings();
  values["log_file"].set_string_param(std::string(protocol::oip::kLogFile));
  values["log_info"].set_bool_param(settings.info);
  values["log_warning"].set_bool_param(settings.warning);
  values["log_error"].set_bool_param(settings.error);
  values["log_verbose_level"].set_uint32_param(settings.verbose_level);
  values["log_format"].set_string_param(std::string(protocol::oip::kLogFormat));
}

Status log_settings(Call& call, const inference::LogSettingsRequest& request,
                    inference::LogSettingsResponse& response) {
  ports::LogControl* log = call.worker().front->log_control();
  if (log == nullptr) {
    return call.refused("", {EndReason::kUnsupported, "the logging extension is not offered", {}});
  }
  LogSettings settings = log->settings();
  for (const auto& [name, value] : request.settings()) {
    const auto set = protocol::oip::set_log_value(name, value_of(value), settings);
    if (!set.has_value()) return call.refused("", set.error());
  }
  if (!request.settings().empty()) log->apply(settings);
  fill(settings, response);
  return Status();
}

}  // namespace

void add_logging_methods(MethodTable& methods) {
  methods.offered[inference_method("LogSettings")] =
      unary<inference::LogSettingsRequest, inference::LogSettingsResponse>(log_settings);
}

}  // namespace baton::adapters::grpc_api
