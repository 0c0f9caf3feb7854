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

TEST(DecisionRing, RendersOneLine) {
  EXPECT_EQ(decision_line({.sequence = 12,
                           .now = Instant::from_ns(5),
                           .kind = DecisionKind::kFormBatch,
                           .reason = DecisionReason::kBatchFull,
                           .instance = 1,
                           .request = RequestId(9),
                           .items = 8,
                           .queued = 2,
                           .detail = 8}),
            R"({"seq":12,"t_ns":5,"kind":"form_batch","reason":"batch_full","instance":1,)"
            R"("request":9,"items":8,"queued":2,"detail":8})");
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

TEST(DecisionFile, WritesEachDecisionOnceAndCountsWhatItMissed) {
  DecisionRing ring(4);
  DecisionFile file(ring, "m", 2);
  Lines lines;
  ring.record({.sequence = 1});
  file.write_new(lines);
  file.write_new(lines);
  ASSERT_EQ(lines.lines.size(), 1U);
  EXPECT_TRUE(lines.lines[0].starts_with(R"({"model":"m","version":2,"seq":1,)"));
  for (uint64_t sequence = 2; sequence <= 8; ++sequence) ring.record({.sequence = sequence});
  file.write_new(lines);
  ASSERT_EQ(lines.lines.size(), 6U);
  EXPECT_EQ(lines.lines[1], R"({"model":"m","version":2,"missed":3})");
  EXPECT_TRUE(lines.lines[2].find("\"seq\":5,") != std::string::npos);
}

}  // namespace
}  // namespace baton::service
