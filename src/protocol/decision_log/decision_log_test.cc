#include "protocol/decision_log/decision_log.h"

#include <gtest/gtest.h>

namespace baton::protocol::decision_log {
namespace {

LogLine read(const std::string& text) {
  LineParser parser;
  auto line = parser.parse(text);
  EXPECT_TRUE(line.has_value()) << text << ": " << line.error();
  return line.has_value() ? *line : LogLine();
}

TEST(DecisionLog, WritesADecisionAsOneLine) {
  const std::string line =
      LineWriter::of_model("m", 2).decision({.sequence = 12,
                                             .entry = 7,
                                             .now = Instant::from_ns(5),
                                             .kind = DecisionKind::kFormBatch,
                                             .reason = DecisionReason::kBatchFull,
                                             .instance = 1,
                                             .request = RequestId(9),
                                             .items = 8,
                                             .queued = 2,
                                             .detail = 8});
  EXPECT_EQ(line,
            R"({"model":"m","version":2,"seq":12,"entry":7,"t_ns":5,"kind":"form_batch",)"
            R"("reason":"batch_full","instance":1,"request":9,"items":8,"queued":2,"detail":8})");
  const LogLine parsed = read(line);
  EXPECT_EQ(parsed.kind, LogLine::Kind::kDecision);
  EXPECT_EQ(parsed.model, "m");
  EXPECT_EQ(parsed.version, 2);
  EXPECT_EQ(parsed.sequence, 12U);
  EXPECT_EQ(parsed.entry, 7U);
}

TEST(DecisionLog, EveryInputIsWrittenAsItWasRead) {
  const LineWriter writer = LineWriter::of_model("m\"odel", 1);
  for (int i = 0; i < kInputKindCount; ++i) {
    const DecisionInput input{.entry = 3,
                              .now = Instant::from_ns(1'000),
                              .kind = static_cast<InputKind>(i),
                              .end = EndReason::kClientGone,
                              .outcome = RunOutcome::kTerminated,
                              .also_running = true,
                              .instance = 5,
                              .request = RequestId(UINT64_MAX),
                              .call = UINT64_MAX - 1,
                              .items = 4,
                              .bytes = 6,
                              .batch_key = UINT64_MAX - 2,
                              .deadline = Instant::from_ns(2'000),
                              .priority = 7,
                              .in_flight = 8,
                              .in_flight_bytes = 9};
    const std::string line = writer.input(input);
    const LogLine parsed = read(line);
    EXPECT_EQ(parsed.kind, LogLine::Kind::kInput);
    EXPECT_EQ(parsed.model, "m\"odel");
    EXPECT_EQ(writer.input(parsed.input), line);
  }
}

TEST(DecisionLog, ADeadlineThatNeverComesIsLeftOut) {
  const std::string line = LineWriter::of_model("m", 1).input({.entry = 1});
  EXPECT_EQ(line.find("deadline"), std::string::npos);
  EXPECT_TRUE(read(line).input.deadline.is_never());
}

TEST(DecisionLog, ADispatchersSetupIsWrittenAsItWasRead) {
  DispatcherSetup setup;
  setup.config.name = "m";
  setup.config.max_batch_size = 32;
  setup.config.instance_count = 2;
  setup.config.batching.enabled = true;
  setup.config.batching.preferred_sizes = {4, 8};
  setup.config.batching.max_delay = Duration::us(100);
  setup.config.batching.priority_levels = 3;
  setup.config.batching.default_priority_level = 2;
  setup.config.batching.default_policy = {.timeout = Duration::ms(5), .max_queue_size = 9};
  setup.config.batching.level_policies[3] = {
      .timeout = Duration::ms(7), .max_queue_size = 1, .timeout_action = TimeoutAction::kDelay};
  setup.config.batching.preserve_ordering = true;
  setup.limits = {.max_items = 11, .max_bytes = 12};
  setup.curve = LatencyCurve({{.batch_size = 1, .duration = Duration::ns(7), .samples = 3},
                              {.batch_size = 8, .duration = Duration::ns(9), .samples = 4}});
  setup.patience = Duration::s(1);
  setup.ageing = Duration::s(2);
  setup.hand_over = Duration::us(20);
  const LineWriter writer = LineWriter::of_model("m", 1);
  const std::string line = writer.setup(setup);
  const LogLine parsed = read(line);
  ASSERT_TRUE(std::holds_alternative<DispatcherSetup>(parsed.setup));
  EXPECT_EQ(writer.setup(std::get<DispatcherSetup>(parsed.setup)), line);
  EXPECT_EQ(std::get<DispatcherSetup>(parsed.setup).config.name, "m");
}

TEST(DecisionLog, AWorkersSetupIsWrittenAsItWasRead) {
  const LineWriter writer = LineWriter::of_worker(4);
  const std::string line = writer.setup(AdmissionSetup{.max_in_flight = 5, .max_bytes = 6});
  const LogLine parsed = read(line);
  EXPECT_EQ(parsed.worker, 4U);
  EXPECT_EQ(writer.setup(std::get<AdmissionSetup>(parsed.setup)), line);
}

TEST(DecisionLog, SaysHowManyRecordsAreMissing) {
  const LogLine missed = read(LineWriter::of_model("m", 1).missed(3));
  EXPECT_EQ(missed.kind, LogLine::Kind::kMissed);
  EXPECT_EQ(missed.count, 3U);
  const LogLine dropped = read(R"({"dropped_lines":2})");
  EXPECT_EQ(dropped.kind, LogLine::Kind::kDropped);
  EXPECT_EQ(dropped.count, 2U);
}

TEST(DecisionLog, RefusesWhatItDoesNotKnow) {
  LineParser parser;
  for (const char* line : {"{", "[]", R"({"model":"m"})", R"({"model":"m","in":"dance","entry":1})",
                           R"({"model":"m","in":"abort","entry":1,"t_ns":1,"scope":"all"})",
                           R"({"model":"m","in":"finish","entry":1,"t_ns":1,"outcome":"odd"})",
                           R"({"model":"m","in":"next","entry":1,"t_ns":1,"instance":4294967296})",
                           R"({"model":"m","setup":{"curve":[{"batch":0,"ns":1,"samples":1}]}})",
                           R"({"model":"m","setup":{"surprise":1}})"}) {
    EXPECT_FALSE(parser.parse(line).has_value()) << line;
  }
}

TEST(DecisionLog, RefusesNumbersThatNoServerHas) {
  LineParser parser;
  const std::string head = R"({"model":"m","setup":{)";
  for (const char* setup : {R"("batching":{"priority_levels":256})", R"("patience_ns":0)",
                            R"("ageing_ns":86400000000000)", R"("instances":256)"}) {
    EXPECT_TRUE(parser.parse(head + setup + "}}").has_value()) << setup;
  }
  for (const char* setup :
       {R"("batching":{"priority_levels":257})", R"("batching":{"priority_levels":4294967295})",
        R"("batching":{"default_level":257})", R"("batching":{"level_policies":[{"level":257}]})",
        R"("batching":{"max_delay_ns":-1})", R"("patience_ns":-1)", R"("ageing_ns":86400000000001)",
        R"("ageing_ns":-1)", R"("hand_over_ns":9223372036854775807)", R"("instances":257)",
        R"("max_batch_size":65537)"}) {
    EXPECT_FALSE(parser.parse(head + setup + "}}").has_value()) << setup;
  }
  for (const char* time : {R"("t_ns":-1)", R"("t_ns":1,"deadline_ns":9223372036854775806)"}) {
    const std::string line = R"({"model":"m","in":"submit","entry":1,)" + std::string(time) + "}";
    EXPECT_FALSE(parser.parse(line).has_value()) << line;
  }
}

}  // namespace
}  // namespace baton::protocol::decision_log
