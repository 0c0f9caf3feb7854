#include "service/telemetry/decision_ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace baton::service {
namespace {

TEST(DecisionRing, KeepsTheNewest) {
  DecisionRing ring(4);
  for (uint64_t i = 1; i <= 6; ++i) ring.record({.sequence = i});
  const auto newest = ring.newest(3);
  ASSERT_EQ(newest.size(), 3U);
  EXPECT_EQ(newest.front().sequence, 4U);
  EXPECT_EQ(newest.back().sequence, 6U);
  EXPECT_EQ(ring.newest(100).size(), 4U);
  EXPECT_EQ(ring.recorded(), 6U);
}

TEST(DecisionRing, ReadersNeverSeeHalfADecision) {
  DecisionRing ring(8);
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (uint64_t i = 1; i < 100'000; ++i) ring.record({.sequence = i, .items = i, .detail = i});
    done = true;
  });
  while (!done) {
    for (const Decision& decision : ring.newest(8)) {
      EXPECT_EQ(decision.sequence, decision.items);
      EXPECT_EQ(decision.sequence, decision.detail);
    }
  }
  writer.join();
}

class Lines final : public ports::LogSink {
 public:
  void write(std::string_view line) override { lines.emplace_back(line); }
  std::vector<std::string> lines;
};

TEST(DecisionRing, KeepsInputsForAFileAlone) {
  DecisionRing memory(4);
  EXPECT_FALSE(memory.takes_inputs());
  memory.input({});
  EXPECT_TRUE(DecisionRing(4, 4).takes_inputs());
}

TEST(DecisionFile, WritesTheSetupThenEachRecordOnceInOrderAndCountsWhatItMissed) {
  DecisionRing ring(2, 4);
  const auto writer = protocol::decision_log::LineWriter::of_model("m", 2);
  DecisionFile file(ring, writer, "setup");
  Lines lines;
  ring.input({.entry = 1, .kind = InputKind::kNext});
  ring.record({.sequence = 1, .entry = 1});
  EXPECT_EQ(file.write_new(lines), 0U);
  EXPECT_EQ(file.write_new(lines), 0U);
  ASSERT_EQ(lines.lines.size(), 3U);
  EXPECT_EQ(lines.lines[0], "setup");
  EXPECT_TRUE(lines.lines[1].starts_with(R"({"model":"m","version":2,"in":"next","entry":1,)"));
  EXPECT_TRUE(lines.lines[2].starts_with(R"({"model":"m","version":2,"seq":1,"entry":1,)"));
  for (uint64_t sequence = 2; sequence <= 8; ++sequence) ring.record({.sequence = sequence});
  EXPECT_EQ(file.write_new(lines), 3U);
  ASSERT_EQ(lines.lines.size(), 8U);
  EXPECT_EQ(lines.lines[3], R"({"model":"m","version":2,"missed":3})");
  EXPECT_TRUE(lines.lines[4].find("\"seq\":5,") != std::string::npos);
}

}  // namespace
}  // namespace baton::service
