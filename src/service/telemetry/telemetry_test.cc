#include "service/telemetry/telemetry.h"
#include "service/telemetry/trace_line.h"

#include <gtest/gtest.h>

#include "ports/testing/manual_clock.h"
#include "service/telemetry/metric_table.h"

namespace baton::service {

using protocol::exposition::Format;
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != std::string::npos;
}

TEST(Telemetry, SumsTheWorkersAtAScrape) {
  Telemetry telemetry(2);
  const size_t slot = *telemetry.slot_for("m", 1);
  for (size_t worker : {0U, 1U}) {
    ModelCells& cells = telemetry.cells(worker, slot);
    cells.started.add(3);
    cells.ended[static_cast<size_t>(EndReason::kOk)].add(2);
    cells.items_done.add(5);
    cells.total.record(Duration::us(70));
    cells.queue.record(Duration::us(3));
  }
  const std::string text = telemetry.render({}, {}, Format::kText);
  EXPECT_TRUE(has_line(text, R"(nv_inference_request_success{model="m",version="1"} 4)"));
  EXPECT_TRUE(has_line(text, R"(nv_inference_count{model="m",version="1"} 10)"));
  EXPECT_TRUE(has_line(text, R"(inference_requests_in_flight{model="m",version="1"} 2)"));
  EXPECT_TRUE(has_line(
      text, R"(baton_request_duration_seconds_bucket{model="m",version="1",le="0.0001"} 2)"));
  EXPECT_TRUE(has_line(text, R"(model_latency_ms_bucket{model="m",version="1",le="0.05"} 0)"));
  EXPECT_EQ(telemetry.in_flight(), 2U);
}

TEST(Telemetry, TellsAModelsStatisticsFromTheSameCells) {
  Telemetry telemetry(2);
  ports::testing::ManualClock clock;
  ports::ModelVersion version;
  version.model = "m";
  version.version = 1;
  version.metrics_slot = *telemetry.slot_for("m", 1);
  EXPECT_EQ(telemetry.statistics(version, clock).last_inference_ms, 0);
  for (size_t worker : {0U, 1U}) {
    ModelCells& cells = telemetry.cells(worker, version.metrics_slot);
    cells.ended[static_cast<size_t>(EndReason::kQueueFull)].add(1);
    cells.failed_ns.add(40);
    cells.items_done.add(5);
    cells.total.record(Duration::us(70));
    cells.queue.record(Duration::us(3));
    cells.compute.record(Duration::us(50));
    cells.compute_input_ns.add(7);
    cells.last_arrival.raise(clock.now().ns());
  }
  const ModelStatistics found = telemetry.statistics(version, clock);
  EXPECT_EQ(found.items, 10U);
  EXPECT_EQ(found.success.count, 2U);
  EXPECT_EQ(found.success.ns, 140'000U);
  EXPECT_EQ(found.fail.count, 2U);
  EXPECT_EQ(found.fail.ns, 80U);
  EXPECT_EQ(found.queue.ns, 6'000U);
  EXPECT_EQ(found.compute_infer.ns, 100'000U);
  EXPECT_EQ(found.compute_input.count, 2U);
  EXPECT_EQ(found.compute_input.ns, 14U);
  EXPECT_EQ(found.last_inference_ms, clock.wall().unix_ns / 1'000'000);
}

TEST(Telemetry, GroupsFailuresAsTritonDoes) {
  Telemetry telemetry(1);
  ModelCells& cells = telemetry.cells(0, *telemetry.slot_for("m", 1));
  cells.ended[static_cast<size_t>(EndReason::kQueueFull)].add(1);
  cells.ended[static_cast<size_t>(EndReason::kDeadlineQueued)].add(1);
  cells.ended[static_cast<size_t>(EndReason::kClientGone)].add(1);
  cells.ended[static_cast<size_t>(EndReason::kInvalid)].add(1);
  const std::string text = telemetry.render({}, {}, Format::kText);
  const std::string failure = R"(nv_inference_request_failure{model="m",version="1",reason=)";
  EXPECT_TRUE(has_line(text, failure + "\"REJECTED\"} 2"));
  EXPECT_TRUE(has_line(text, failure + "\"CANCELED\"} 1"));
  EXPECT_TRUE(has_line(text, failure + "\"OTHER\"} 1"));
}

TEST(Telemetry, ASlotIsGivenAgainToTheSameVersion) {
  Telemetry telemetry(1);
  const auto first = telemetry.slot_for("m", 1);
  EXPECT_EQ(telemetry.slot_for("m", 1), first);
  EXPECT_NE(telemetry.slot_for("m", 2), first);
}

TEST(Telemetry, RefusalsBeforeAModelAreCountedByReason) {  // tensorrtllm_backend#582
  Telemetry telemetry(1);
  telemetry.cells(0).refused[static_cast<size_t>(EndReason::kTooLarge)].add(1);
  EXPECT_TRUE(has_line(telemetry.render({}, {}, Format::kText),
                       R"(baton_refused_total{end_reason="too_large"} 1)"));
}

TEST(Telemetry, ShowsEveryMetricOfTheTableAndNoOther) {
  Telemetry telemetry(1);
  static_cast<void>(telemetry.slot_for("m", 1));
  const std::string text = "\n" + telemetry.render({}, {}, Format::kText);
  size_t families = 0;
  for (size_t at = text.find("\n# TYPE "); at != std::string::npos;
       at = text.find("\n# TYPE ", at + 1)) {
    const MetricInfo& metric = all_metrics()[families++];
    const std::string line = std::string(metric.name) + " " + std::string(metric.type);
    EXPECT_EQ(text.substr(at + 8, line.size() + 1), line + "\n");
  }
  EXPECT_EQ(families, all_metrics().size());
}

TEST(Telemetry, ShowsWhatListenersAndLogsCount) {
  Telemetry telemetry(1);
  ProcessCounts process;
  process.listeners = {{.name = "http", .open = 2, .accepted = 7, .refused = 1}};
  process.logs = {{.name = "access", .dropped = 3}};
  const std::string text = telemetry.render({}, process, Format::kText);
  EXPECT_TRUE(has_line(text, R"(baton_listener_connections{listener="http"} 2)"));
  EXPECT_TRUE(has_line(text, R"(baton_listener_connections_accepted_total{listener="http"} 7)"));
  EXPECT_TRUE(has_line(text, R"(baton_listener_connections_refused_total{listener="http"} 1)"));
  EXPECT_TRUE(has_line(text, R"(baton_log_lines_dropped_total{log="access"} 3)"));
}

TEST(TraceLine, HasTheStagesThatHappened) {
  RequestContext context;
  context.id = RequestId(9);
  context.client_id = "a\"";
  context.protocol = Protocol::kGrpc;
  context.arrival = Instant::from_ns(1);
  RequestTrace trace{.context = context,
                     .model = "m",
                     .version = 2,
                     .started = Instant::from_ns(2),
                     .timings = {.queued = Instant::from_ns(3),
                                 .started = Instant::from_ns(4),
                                 .computed_from = Instant::from_ns(5),
                                 .computed_to = Instant::from_ns(6),
                                 .ended = Instant::from_ns(7),
                                 .batch_items = 1},
                     .ended = Instant::from_ns(8)};
  EXPECT_EQ(trace_line(trace),
            R"({"id":9,"model_name":"m","model_version":2,"request_id":"a\"","timestamps":[)"
            R"({"name":"GRPC_WAITREAD_START","ns":1},{"name":"REQUEST_START","ns":2},)"
            R"({"name":"QUEUE_START","ns":3},{"name":"COMPUTE_START","ns":4},)"
            R"({"name":"COMPUTE_INPUT_END","ns":5},{"name":"COMPUTE_OUTPUT_START","ns":6},)"
            R"({"name":"COMPUTE_END","ns":7},{"name":"REQUEST_END","ns":8}]})");
  context.client_id.clear();
  context.protocol = Protocol::kHttp;
  trace.reason = EndReason::kInvalid;
  trace.timings = {};
  EXPECT_EQ(trace_line(trace),
            R"({"id":9,"model_name":"m","model_version":2,"end_reason":"invalid","timestamps":[)"
            R"({"name":"HTTP_RECV_START","ns":1},{"name":"REQUEST_START","ns":2},)"
            R"({"name":"REQUEST_END","ns":8}]})");
}

}  // namespace
}  // namespace baton::service
