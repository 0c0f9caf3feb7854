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
    {"baton_http_connections", "gauge", "connections", "listener", "HTTP connections now."},
    {"baton_http_connections_accepted_total", "counter", "connections", "listener",
     "HTTP connections that were accepted."},
    {"baton_http_connections_refused_total", "counter", "connections", "listener",
     "HTTP connections over the limit, answered 503 and closed."},
    {"baton_http_timeouts_total", "counter", "connections", "listener",
     "HTTP connections whose request came, or whose answer was taken, too slowly."},
    {"baton_http_bad_requests_total", "counter", "requests", "listener",
     "HTTP requests that the codec refused: malformed, over a limit, not offered."},
    {"baton_http_receiving_bytes", "gauge", "bytes", "listener",
     "Bytes of HTTP bodies that are not complete yet."},
    {"baton_http_write_stalls_total", "counter", "connections", "listener",
     "HTTP connections cut off because their answer was not taken; among the timeouts."},
    {"baton_grpc_write_stalls_total", "counter", "calls", "",
     "gRPC calls cut off because their answer was not taken."},
    {"baton_grpc_connections_refused_total", "counter", "connections", "",
     "gRPC connections closed at once: three quarters of the descriptors were in use."},
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
      "answers in\nPrometheus' text format. `baton_*` are ours; `nv_inference_*` keep Triton's "
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
