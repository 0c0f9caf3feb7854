#include "adapters/onnx/run_failure.h"

#include <gtest/gtest.h>

#include <vector>

#include "ports/testing/manual_clock.h"

namespace baton::adapters::onnx {
namespace {

constexpr const char* kGather =
    "Non-zero status code returned while running Gather node. Name:'g/1' Status Message: indices "
    "element out of data bounds, idx=987654 must be within the inclusive range [-10,9]";

class Lines final : public ports::Log {
 public:
  void log(ports::LogLevel, std::string message) override { all.push_back(std::move(message)); }
  std::vector<std::string> all;
};

TEST(RunFailure, TheClientIsToldItsValuesAndTheLogIsNot) {
  EXPECT_NE(text_for_client(kGather).find("idx=987654"), std::string::npos);
  EXPECT_EQ(place_for_log(kGather), "in the Gather node \"g/1\"");
  EXPECT_EQ(place_for_log("Got: 987654 Expected: 4"), "outside its nodes");
}

TEST(RunFailure, NoFileOfTheLibraryIsNamed) {
  EXPECT_EQ(
      text_for_client("/onnxruntime_src/onnxruntime/core/ops.h:560 axis == 1 was false.\n3 by 4"),
      "axis == 1 was false. 3 by 4");
}

TEST(RunFailure, TextsAreBoundedAndPrintable) {
  EXPECT_LE(text_for_client(std::string(10'000, 'x')).size(), 310U);
  EXPECT_EQ(text_for_client("a\x01\xff z"), "a?? z");
  const std::string name(10'000, 'n');
  EXPECT_LE(place_for_log("while running A node. Name:'" + name + "'").size(), 200U);
}

TEST(FailureLog, WritesAFewLinesASecondAndCountsTheRest) {
  Lines lines;
  ports::testing::ManualClock clock;
  FailureLog log(lines, clock);
  for (int i = 0; i < 20; ++i) log.write("m", kGather);
  EXPECT_EQ(lines.all.size(), 5U);
  clock.advance(Duration::s(1));
  log.write("m", kGather);
  ASSERT_EQ(lines.all.size(), 6U);
  EXPECT_EQ(lines.all.back(),
            "model m: a run failed in the Gather node \"g/1\"; 15 more since the last line");
}

}  // namespace
}  // namespace baton::adapters::onnx
