#include "adapters/log/trace_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace baton::adapters::log {
namespace {

namespace fs = std::filesystem;

class TraceLogTest : public ::testing::Test {
 protected:
  TraceLogTest() : folder_(fs::path(::testing::TempDir()) / "trace_log_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    path_ = folder_ / "traces.json";
  }
  ~TraceLogTest() override { fs::remove_all(folder_); }

  std::unique_ptr<TraceLog> open() {
    return std::make_unique<TraceLog>(path_, TraceFile::open(path_).value());
  }
  static std::string text_of(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(TraceLogTest, SamplesEachModelByItself) {
  const auto log = open();
  EXPECT_FALSE(log->sample("m"));
  log->apply("", {.timestamps = true, .rate = 3});
  std::string seen;
  for (int i = 0; i < 6; ++i) {
    seen += log->sample("m") ? 'x' : '.';
    if (i % 2 == 0) EXPECT_EQ(log->sample("other"), i == 4);
  }
  EXPECT_EQ(seen, "..x..x");
}

TEST_F(TraceLogTest, AModelFallsBackToTheServer) {
  const auto log = open();
  log->apply("", {.timestamps = true, .rate = 2});
  log->apply("m", {.rate = 1});
  EXPECT_TRUE(log->sample("m"));
  EXPECT_EQ(log->settings("m"), (TraceSettings{.timestamps = true, .rate = 1}));
  log->apply("m", {.timestamps = false});
  EXPECT_FALSE(log->sample("m"));
  EXPECT_EQ(log->settings("m").rate, 2U);
  log->apply("m", {});
  EXPECT_EQ(log->settings("m"), log->settings("other"));
  EXPECT_EQ(log->settings("").rate, 2U);
  log->apply("m", {.timestamps = true});
  log->apply("", {});
  EXPECT_FALSE(log->sample("other"));
  EXPECT_EQ(log->settings("m"), (TraceSettings{.timestamps = true}));
}

TEST_F(TraceLogTest, ACountEndsAndBeginsAnew) {
  const auto log = open();
  log->apply("", {.timestamps = true, .rate = 1, .count = 2});
  EXPECT_TRUE(log->sample("a"));
  EXPECT_TRUE(log->sample("b"));
  EXPECT_FALSE(log->sample("a"));
  EXPECT_EQ(log->settings("").count, 0);
  log->apply("", {.timestamps = true, .rate = 2, .count = 2});
  EXPECT_EQ(log->settings("").count, 0) << "the count is as it was";
  log->apply("b", {.rate = 1, .count = 1});
  EXPECT_TRUE(log->sample("b"));
  EXPECT_FALSE(log->sample("b"));
  EXPECT_EQ(log->settings("b").count, 0);
}

TEST_F(TraceLogTest, TheFileIsAnArrayThatGoesOnAfterARestart) {
  for (int start = 0; start < 2; ++start) {
    const auto log = open();
    log->write("{\"a\":1}");
    log->write("{\"b\":2}");
  }
  EXPECT_EQ(text_of(path_), "[\n{\"a\":1},\n{\"b\":2},\n{\"a\":1},\n{\"b\":2}\n]\n");
}

TEST_F(TraceLogTest, AFrequencyFillsNumberedFiles) {
  std::ofstream(path_ + ".0") << "mine";
  {
    const auto log = open();
    log->apply("", {.log_frequency = 2});
    for (int i = 0; i < 5; ++i) log->write(std::to_string(i));
  }
  EXPECT_EQ(text_of(path_), "");
  EXPECT_EQ(text_of(path_ + ".0"), "mine");
  EXPECT_EQ(text_of(path_ + ".1"), "[\n0,\n1\n]\n");
  EXPECT_EQ(text_of(path_ + ".2"), "[\n2,\n3\n]\n");
  EXPECT_EQ(text_of(path_ + ".3"), "[\n4\n]\n");
}

TEST_F(TraceLogTest, AFileThatHoldsSomethingElseIsLeftAlone) {
  std::ofstream(path_) << "notes";
  EXPECT_TRUE(TraceFile::open(path_).error().contains("something else"));
  EXPECT_EQ(text_of(path_), "notes");
  EXPECT_FALSE(TraceFile::open(folder_).has_value());
  EXPECT_FALSE(TraceFile::open("/dev/null").has_value());
}

}  // namespace
}  // namespace baton::adapters::log
