#include "sim/replay.h"

#include <gtest/gtest.h>

#include "sim/run.h"

namespace baton::sim {
namespace {

class Lines final : public ports::LogSink {
 public:
  void write(std::string_view line) override { list.emplace_back(line); }
  std::vector<std::string> list;
};

std::vector<std::string> record(const std::string& scenario, uint64_t seed, Duration duration) {
  Lines lines;
  const auto result =
      run_scenario({.scenario = scenario, .seed = seed, .duration = duration, .decisions = &lines});
  EXPECT_TRUE(result.has_value());
  return std::move(lines.list);
}

ReplayResult replay(const std::vector<std::string>& lines) {
  Replay replay;
  for (const std::string& line : lines) {
    const auto fed = replay.feed(line);
    EXPECT_TRUE(fed.has_value()) << fed.error();
    if (!fed.has_value() || !*fed) break;
  }
  return replay.finish();
}

size_t find_line(const std::vector<std::string>& lines, const std::string& text, size_t from = 0) {
  while (from < lines.size() && lines[from].find(text) == std::string::npos) ++from;
  EXPECT_LT(from, lines.size()) << text;
  return from;
}

TEST(Replay, DecidesTheSameAsEveryScenario) {
  for (std::string_view name : scenario_names()) {
    const auto lines = record(std::string(name), 1, Duration::s(3));
    const ReplayResult result = replay(lines);
    EXPECT_EQ(result.difference, nullptr) << render_text(result);
    EXPECT_TRUE(result.complete()) << render_text(result);
    EXPECT_GT(result.decisions(), 100U) << name;
  }
}

TEST(Replay, DecidesTheSameWhateverTheKnobs) {
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    const ReplayResult result = replay(record("any", seed, Duration::s(1)));
    EXPECT_EQ(result.difference, nullptr) << "seed " << seed << "\n" << render_text(result);
    EXPECT_TRUE(result.complete()) << render_text(result);
  }
}

TEST(Replay, ARunWithALogIsTheRunWithoutOne) {
  Lines lines;
  ScenarioOptions options{.scenario = "mixed", .seed = 7, .duration = Duration::s(2)};
  const uint64_t without = run_scenario(options)->trace_hash;
  options.decisions = &lines;
  EXPECT_EQ(run_scenario(options)->trace_hash, without);
}

TEST(Replay, FindsAChangedByteOfADecision) {
  auto lines = record("mixed", 3, Duration::s(1));
  const size_t at = find_line(lines, "\"kind\":\"form_batch\"", lines.size() / 2);
  const size_t items = lines[at].find("\"items\":") + 8;
  lines[at][items] = lines[at][items] == '9' ? '8' : '9';
  const ReplayResult result = replay(lines);
  ASSERT_NE(result.difference, nullptr);
  EXPECT_EQ(result.difference->line, at + 1);
  EXPECT_EQ(result.difference->recorded, lines[at]);
  EXPECT_NE(render_text(result).find("DIFFERS at line " + std::to_string(at + 1)),
            std::string::npos);
}

TEST(Replay, FindsAChangedByteOfAnInput) {
  auto lines = record("mixed", 3, Duration::s(1));
  const size_t at = find_line(lines, "\"in\":\"submit\"", lines.size() / 2);
  const size_t request = lines[at].find("\"request\":") + 10;
  lines[at][request] = lines[at][request] == '9' ? '8' : '9';
  EXPECT_NE(replay(lines).difference, nullptr);
}

TEST(Replay, FindsADecisionThatWasAdded) {
  auto lines = record("mixed", 3, Duration::s(1));
  const size_t at = find_line(lines, "\"kind\":\"admit\"", lines.size() / 2);
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), lines[at]);
  const ReplayResult result = replay(lines);
  ASSERT_NE(result.difference, nullptr);
  EXPECT_EQ(result.difference->replayed, "");
}

TEST(Replay, SaysThatRecordsAreMissingAndComparesThoseBefore) {
  const auto whole = record("mixed", 3, Duration::s(1));
  for (const std::string kind : {"\"in\":\"submit\"", "\"kind\":\"admit\""}) {
    auto lines = whole;
    const size_t at = find_line(lines, kind, lines.size() / 2);
    lines[at] = R"({"dropped_lines":1})";
    const ReplayResult result = replay(lines);
    EXPECT_EQ(result.difference, nullptr) << render_text(result);
    EXPECT_FALSE(result.complete());
    EXPECT_GT(result.decisions(), 100U);
    EXPECT_NE(render_text(result).find("INCOMPLETE: line " + std::to_string(at + 1) +
                                       ": 1 lines of the log were lost here"),
              std::string::npos)
        << render_text(result);
  }
}

TEST(Replay, AGapThatTookNothingOfAServiceDoesNotStopIt) {
  auto lines = record("mixed", 3, Duration::s(1));
  lines.insert(lines.begin() + 50, R"({"dropped_lines":1})");
  EXPECT_TRUE(replay(lines).complete());
}

TEST(Replay, WithoutASetupNothingIsReplayed) {
  auto lines = record("steady", 1, Duration::s(1));
  lines.erase(lines.begin());
  const ReplayResult result = replay(lines);
  EXPECT_FALSE(result.complete());
  EXPECT_EQ(result.decisions(), 0U);
}

TEST(Replay, ALaterProcessGoesOnInTheSameFile) {
  auto lines = record("steady", 1, Duration::s(1));
  const auto more = record("steady", 2, Duration::s(1));
  const size_t first = replay(lines).decisions();
  lines.insert(lines.end(), more.begin(), more.end());
  const ReplayResult result = replay(lines);
  EXPECT_TRUE(result.complete() && result.difference == nullptr) << render_text(result);
  EXPECT_EQ(result.decisions(), first + replay(more).decisions());
}

TEST(Replay, ALaterSetupDoesNotHideADecisionThatIsMissing) {
  const auto writer = protocol::decision_log::LineWriter::of_worker(2);
  const std::string setup = writer.setup(AdmissionSetup{.max_in_flight = 1, .max_bytes = 100});
  const std::string full =
      writer.input({.entry = 1, .kind = InputKind::kAdmission, .in_flight = 1});
  ReplayResult result = replay({setup, full, setup});
  ASSERT_NE(result.difference, nullptr);
  EXPECT_EQ(result.difference->line, 3U);
  EXPECT_EQ(result.difference->recorded, "");
  EXPECT_NE(result.difference->replayed, "");
  result = replay({setup, full, R"({"dropped_lines":1})", setup, full});
  EXPECT_EQ(result.difference, nullptr);
  EXPECT_FALSE(result.complete());
}

TEST(Replay, RefusesWhatIsNoDecisionLog) {
  for (const char* line : {"", "{}", "[1]", R"({"model":"m","version":1})",
                           R"({"model":"m","version":1,"in":"submit","entry":1,"colour":2})",
                           R"({"in":"next","entry":1,"t_ns":1,"instance":0})"}) {
    Replay replay;
    EXPECT_FALSE(replay.feed(line).has_value()) << line;
  }
}

TEST(Replay, AnInputThatCannotBeIsAnError) {
  auto lines = record("steady", 1, Duration::s(1));
  for (const char* what :
       {"finish\",\"entry\":1,\"t_ns\":9,\"instance\":0,\"outcome\":\"done\"",
        "next\",\"entry\":1,\"t_ns\":9,\"instance\":70", "admission\",\"entry\":1,\"t_ns\":9"}) {
    Replay replay;
    ASSERT_TRUE(replay.feed(lines.front()).has_value());
    const std::string line = R"({"model":"mlp","version":1,"in":")" + std::string(what) + "}";
    EXPECT_FALSE(replay.feed(line).has_value()) << line;
  }
}

TEST(Replay, DecidesAdmissionAgain) {
  const auto writer = protocol::decision_log::LineWriter::of_worker(2);
  const Instant now = Instant::from_ns(5);
  std::vector<std::string> lines = {
      writer.setup(AdmissionSetup{.max_in_flight = 1, .max_bytes = 100}),
      writer.input({.entry = 1, .now = now, .kind = InputKind::kAdmission, .in_flight = 1}),
      writer.decision({.sequence = 1,
                       .entry = 1,
                       .now = now,
                       .kind = DecisionKind::kRefuse,
                       .reason = DecisionReason::kInFlightLimit,
                       .queued = 1})};
  EXPECT_EQ(replay(lines).decisions(), 1U);
  lines[1] = writer.input({.entry = 1, .now = now, .kind = InputKind::kAdmission});
  EXPECT_NE(replay(lines).difference, nullptr);
}

}  // namespace
}  // namespace baton::sim
