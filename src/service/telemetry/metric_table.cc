#include "service/telemetry/metric_table.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace baton::service {
namespace {

constexpr std::string_view kModel = "model, version";

constexpr auto kMetrics = std::to_array<MetricInfo>({
    {"baton_requests_total", "counter", "requests", "model, version, end_reason",
     "Inference requests by how they ended."},
    {"baton_request_duration_seconds", "histogram", "seconds", kModel,
     "Arrival to answer of successful requests."},
    {"baton_queue_duration_seconds", "histogram", "seconds", kModel,
     "Time in the queue until the batch began."},
    {"baton_compute_duration_seconds", "histogram", "seconds", kModel, "The model's own run."},
    {"baton_batch_size", "histogram", "rows", kModel, "Rows of each run of the model."},
    {"baton_queued_requests", "gauge", "requests", kModel, "Requests that wait for a batch."},
    {"baton_running_requests", "gauge", "requests", kModel, "Requests in a batch that runs."},
    {"baton_sequences_live", "gauge", "sequences", kModel, "Sequences that have begun."},
    {"baton_sequences_begun_total", "counter", "sequences", kModel, "Sequences that began."},
    {"baton_sequences_idle_ended_total", "counter", "sequences", kModel,
     "Sequences that ended because they had no request for too long."},
    {"baton_sequence_steps_lost_total", "counter", "requests", kModel,
     "Requests of a sequence that could not run because an earlier one did not succeed."},
    {"baton_sequence_state_bytes", "gauge", "bytes", kModel,
     "States that sequences keep between their requests."},
    {"nv_inference_request_success", "counter", "requests", kModel,
     "Successful inference requests."},
    {"nv_inference_request_failure", "counter", "requests", "model, version, reason",
     "Failed inference requests by reason."},
    {"nv_inference_count", "counter", "rows", kModel, "Rows inferred, batching included."},
    {"nv_inference_exec_count", "counter", "runs", kModel, "Runs of the model."},
    {"nv_inference_pending_request_count", "gauge", "requests", kModel,
     "Requests that wait for a batch."},
    {"nv_inference_request_duration_us", "counter", "microseconds", kModel,
     "Cumulative request time."},
    {"nv_inference_queue_duration_us", "counter", "microseconds", kModel,
     "Cumulative time in the queue."},
    {"nv_inference_compute_input_duration_us", "counter", "microseconds", kModel,
     "Cumulative time of gathering inputs."},
    {"nv_inference_compute_infer_duration_us", "counter", "microseconds", kModel,
     "Cumulative time of the model's own run."},
    {"nv_inference_compute_output_duration_us", "counter", "microseconds", kModel,
     "Cumulative time of handing out outputs."},
    {"inference_requests_in_flight", "gauge", "requests", kModel,
     "Requests admitted and not yet ended."},
    {"inference_queue_length", "gauge", "requests", kModel, "Requests that wait for a batch."},
    {"model_latency_ms", "histogram", "milliseconds", kModel,
     "Arrival to answer of successful requests."},
    {"gpu_utilization", "gauge", "share", "", "Share of time that the GPU was busy, 0 to 1."},
    {"gpu_memory_used_bytes", "gauge", "bytes", "", "GPU memory in use."},
    {"baton_refused_total", "counter", "requests", "end_reason",
     "Requests refused before their model was known, by reason."},
    {"baton_http_requests_total", "counter", "requests", "",
     "Requests of any kind that reached a worker."},
    {"baton_model_ready", "gauge", "0 or 1", kModel, "1 when the model version answers requests."},
    {"baton_listener_connections", "gauge", "connections", "listener", "HTTP connections now."},
    {"baton_listener_connections_accepted_total", "counter", "connections", "listener",
     "Connections that were accepted."},
    {"baton_listener_connections_refused_total", "counter", "connections", "listener",
     "Connections over a limit: answered 503 over HTTP, then closed."},
    {"baton_listener_timeouts_total", "counter", "connections", "listener",
     "Connections and calls whose request came, or whose answer was taken, too slowly."},
    {"baton_listener_bad_requests_total", "counter", "requests", "listener",
     "What the codec refused: malformed, over a limit of the protocol, not offered."},
    {"baton_listener_receiving_bytes", "gauge", "bytes", "listener",
     "Bytes of requests that are not complete yet."},
    {"baton_listener_write_stalls_total", "counter", "connections", "listener",
     "Connections and calls cut off because their answer was not taken; among the timeouts."},
    {"baton_unwritten_answer_bytes", "gauge", "bytes", "",
     "Answers that clients have not taken yet: REST above 64 KiB, and gRPC."},
    {"baton_log_lines_dropped_total", "counter", "lines", "log",
     "Lines that a log lost because its queue was full."},
    {"baton_decision_records_missed_total", "counter", "records", "",
     "Records of the decision log that were overwritten before they were written."},
});

}  // namespace

std::span<const MetricInfo> all_metrics() {
  return kMetrics;
}

const MetricInfo& metric_info(std::string_view name) {
  const auto found = std::ranges::find(kMetrics, name, &MetricInfo::name);
  BATON_CHECK(found != kMetrics.end());
  return *found;
}

std::string metrics_reference() {
  std::string out =
      "# Metrics\n\n"
      "Generated by `baton reference metrics`; do not edit. `GET /metrics` on the metrics port "
      "answers in\nPrometheus' text format or, where `Accept` asks for it, in OpenMetrics 1.0.0: "
      "there "
      "the counters whose\nnames do not end in `_total` keep them and are of unknown type, so that "
      "no "
      "series changes its name.\n`baton_*` are ours; `nv_inference_*` keep Triton's "
      "meaning; the others are what\nscaling policies read. The `gpu_*` families have no samples "
      "without a GPU.\n\n"
      "| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n";
  for (const MetricInfo& metric : kMetrics) {
    out.append("| `").append(metric.name).append("` | ").append(metric.type).append(" | ");
    out.append(metric.unit).append(" | ").append(metric.labels).append(" | ");
    out.append(metric.help).append(" |\n");
  }
  return out;
}

}  // namespace baton::service
