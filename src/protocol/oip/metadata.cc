#include "protocol/oip/metadata.h"

#include <array>

#include "base/json_writer.h"
#include "domain/engine_kind.h"

namespace baton::protocol::oip {
namespace {

// What is answered over REST and gRPC today.
constexpr std::array<std::string_view, 9> kExtensions = {"classification",
                                                         "sequence",
                                                         "sequence(string_id)",
                                                         "binary_tensor_data",
                                                         "model_configuration",
                                                         "model_repository",
                                                         "schedule_policy",
                                                         "statistics",
                                                         "logging"};

void write_tensor(JsonWriter& json, const TensorSpec& spec, bool batches) {
  json.begin_object().field("name", spec.name);
  json.field("datatype", data_type_name(spec.type)).key("shape").begin_array();
  if (batches) json.number(-1);
  for (int64_t dim : spec.dims) json.number(dim);
  json.end_array().end_object();
}

}  // namespace

std::string error_json(const Refusal& refusal) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("error", refusal.message);
  json.field("reason", end_reason_name(refusal.reason)).end_object();
  return out;
}

int http_status(EndReason reason) {
  switch (reason) {
    case EndReason::kOk:
      return 200;
    case EndReason::kInvalid:
      return 400;
    case EndReason::kTooLarge:
      return 413;
    case EndReason::kUnauthorized:
      return 401;
    case EndReason::kNotFound:
      return 404;
    case EndReason::kMethodNotAllowed:
      return 405;
    case EndReason::kUnsupported:
      return 501;
    case EndReason::kNotReady:
    case EndReason::kQueueFull:
    case EndReason::kOverloaded:
    case EndReason::kDeadlineQueued:
    case EndReason::kDeadlineRunning:
    case EndReason::kShuttingDown:
      return 503;
    case EndReason::kClientGone:
      return 499;
    case EndReason::kSlowClient:
      return 408;
    case EndReason::kEngineFailed:
      break;
  }
  return 500;
}

int64_t retry_after_seconds(const Refusal& refusal) {
  if (refusal.retry_after <= Duration()) return 0;
  return (refusal.retry_after.ms() + 999) / 1000;
}

std::vector<std::string_view> extensions(bool shared_memory, bool trace) {
  std::vector<std::string_view> found(kExtensions.begin(), kExtensions.end());
  if (shared_memory) found.emplace_back("system_shared_memory");
  if (trace) found.emplace_back("trace");
  return found;
}

std::string server_metadata_json(std::string_view version,
                                 std::span<const std::string_view> extensions) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("name", "baton").field("version", version);
  json.key("extensions").begin_array();
  for (std::string_view extension : extensions) json.string(extension);
  json.end_array().end_object();
  return out;
}

std::string model_metadata_json(const ModelConfig& config, std::span<const int64_t> versions) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("name", config.name).key("versions").begin_array();
  for (int64_t version : versions) json.string(std::to_string(version));
  json.end_array().field("platform", engine_kind_row(EngineKind::kOnnx).platform);
  json.key("inputs").begin_array();
  for (const TensorSpec& spec : config.inputs) write_tensor(json, spec, config.batches());
  json.end_array().key("outputs").begin_array();
  for (const TensorSpec& spec : config.outputs) write_tensor(json, spec, config.batches());
  json.end_array().end_object();
  return out;
}

}  // namespace baton::protocol::oip
