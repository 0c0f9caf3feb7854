#include "service/gateway/models_json.h"

#include "base/json_writer.h"

namespace baton::service {
namespace {

void write_curve(JsonWriter& json, const LatencyCurve& curve) {
  json.key("curve").begin_array();
  for (const CurvePoint& point : curve.points()) {
    json.begin_object().field("batch", uint64_t{point.batch_size});
    json.field("us", static_cast<double>(point.duration.ns()) / 1000);
    json.field("samples", point.samples).end_object();
  }
  json.end_array();
}

void write_version(JsonWriter& json, const ports::ModelVersion& version) {
  json.begin_object().field("version", version.version);
  json.field("state", model_state_name(version.state));
  if (!version.reason.empty()) json.field("reason", version.reason);
  json.field("instances", uint64_t{version.config.instance_count});
  json.field("max_batch_size", uint64_t{version.config.max_batch_size});
  if (version.engine) {
    const ports::EngineStats stats = version.engine->stats();  // of the engine that serves now
    json.field("queued", stats.queued_calls).field("running", stats.running_calls);
    json.field("executions", stats.executions).field("items", stats.executed_items);
    write_curve(json, version.engine->curve());
  }
  json.end_object();
}

}  // namespace

std::string models_json(const ports::Directory& directory) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const auto& [name, entry] : directory.models) {
    json.begin_object().field("name", name).field("required", entry->required);
    if (!entry->reason.empty()) json.field("state", "failed").field("reason", entry->reason);
    json.key("versions").begin_array();
    for (const auto& [number, version] : entry->versions) write_version(json, *version);
    json.end_array().end_object();
  }
  json.end_array();
  return out;
}

}  // namespace baton::service
