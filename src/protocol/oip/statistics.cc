#include "protocol/oip/statistics.h"

#include "base/json_writer.h"

namespace baton::protocol::oip {
namespace {

void write_stage(JsonWriter& json, std::string_view name, const StageTotal& stage) {
  json.key(name).begin_object().field("count", stage.count).field("ns", stage.ns).end_object();
}

void write_model(JsonWriter& json, const ModelStatistics& model) {
  json.begin_object().field("name", model.model).field("version", std::to_string(model.version));
  json.field("last_inference", model.last_inference_ms).field("inference_count", model.items);
  json.field("execution_count", model.executions).key("inference_stats").begin_object();
  write_stage(json, "success", model.success);
  write_stage(json, "fail", model.fail);
  write_stage(json, "queue", model.queue);
  write_stage(json, "compute_input", model.compute_input);
  write_stage(json, "compute_infer", model.compute_infer);
  write_stage(json, "compute_output", model.compute_output);
  write_stage(json, "cache_hit", {});  // there is no cache of answers
  write_stage(json, "cache_miss", {});
  json.end_object().key("response_stats").begin_object().end_object();
  json.key("batch_stats").begin_array();
  for (const BatchSizeTotals& batch : model.batches) {
    json.begin_object().field("batch_size", batch.items);
    write_stage(json, "compute_input", {batch.runs, batch.input_ns});
    write_stage(json, "compute_infer", {batch.runs, batch.infer_ns});
    write_stage(json, "compute_output", {batch.runs, batch.output_ns});
    json.end_object();
  }
  json.end_array().key("memory_usage").begin_array().end_array().end_object();
}

}  // namespace

std::string statistics_json(std::span<const ModelStatistics> models) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("model_stats").begin_array();
  for (const ModelStatistics& model : models) write_model(json, model);
  json.end_array().end_object();
  return out;
}

}  // namespace baton::protocol::oip
