#include "protocol/oip_proto/statistics.h"

#include <string>

#include "baton_inference.pb.h"

namespace baton::protocol::oip_proto {
namespace {

void fill(const StageTotal& stage, inference::StatisticDuration& out) {
  out.set_count(stage.count);
  out.set_ns(stage.ns);
}

void fill(const ModelStatistics& model, inference::ModelStatistics& out) {
  out.set_name(model.model);
  out.set_version(std::to_string(model.version));
  out.set_last_inference(static_cast<uint64_t>(model.last_inference_ms));
  out.set_inference_count(model.items);
  out.set_execution_count(model.executions);
  inference::InferStatistics& stages = *out.mutable_inference_stats();
  fill(model.success, *stages.mutable_success());
  fill(model.fail, *stages.mutable_fail());
  fill(model.queue, *stages.mutable_queue());
  fill(model.compute_input, *stages.mutable_compute_input());
  fill(model.compute_infer, *stages.mutable_compute_infer());
  fill(model.compute_output, *stages.mutable_compute_output());
  fill({}, *stages.mutable_cache_hit());  // there is no cache of answers
  fill({}, *stages.mutable_cache_miss());
  for (const BatchSizeTotals& batch : model.batches) {
    inference::InferBatchStatistics& sizes = *out.add_batch_stats();
    sizes.set_batch_size(batch.items);
    fill({batch.runs, batch.input_ns}, *sizes.mutable_compute_input());
    fill({batch.runs, batch.infer_ns}, *sizes.mutable_compute_infer());
    fill({batch.runs, batch.output_ns}, *sizes.mutable_compute_output());
  }
}

}  // namespace

void encode_statistics(std::span<const ModelStatistics> models,
                       inference::ModelStatisticsResponse& response) {
  for (const ModelStatistics& model : models) fill(model, *response.add_model_stats());
}

}  // namespace baton::protocol::oip_proto
