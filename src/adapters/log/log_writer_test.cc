#include "adapters/log/log_writer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "ports/testing/manual_clock.h"

namespace baton::adapters::log {
namespace {

TEST(LogWriter, WritesEveryLineInOrderBeforeItEnds) {
  std::string path = testing::TempDir() + "baton_log_XXXXXX";
  const int descriptor = mkstemp(path.data());
  {
    LogWriter writer(descriptor, true);
    for (int i = 0; i < 1000; ++i) writer.write(std::to_string(i));
  }
  std::ifstream in(path);
  std::string line;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(std::getline(in, line));
    ASSERT_EQ(line, std::to_string(i));
  }
  unlink(path.c_str());
}

TEST(LogWriter, EndsThoughNobodyReadsThePipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    LogWriter writer(ends[1], true);
    for (int i = 0; i < 100; ++i) writer.write(std::string(10'000, 'x'));
  }
  close(ends[0]);
}

TEST(LogWriter, CountsTheLinesThatNobodyReadAnyMore) {
  signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  LogWriter writer(ends[1], true);
  for (int i = 0; i < 100; ++i) writer.write("x");
  while (writer.dropped() < 100) std::this_thread::yield();
  EXPECT_EQ(writer.dropped(), 100U);
}

// A file that may not grow takes a part of a line, then nothing; then it may grow again.
TEST(LogWriter, SaysWhatWasLostOnALineOfItsOwn) {
  signal(SIGXFSZ, SIG_IGN);
  std::string path = testing::TempDir() + "baton_log_XXXXXX";
  const int descriptor = mkstemp(path.data());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{7, before.rlim_max};
  {
    LogWriter writer(descriptor, true);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (const char* line : {"one", "twotwo", "three"}) writer.write(line);
    while (writer.dropped() < 2) std::this_thread::yield();
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    writer.write("four");
  }
  std::ifstream in(path);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  EXPECT_EQ(text, "one\ntwo\n{\"dropped_lines\":2}\nfour\n");
  unlink(path.c_str());
}

TEST(LogWriter, APathThatCannotBeOpenedIsSaid) {
  EXPECT_EQ(open_log("/no/such/folder/x"), nullptr);
}

class Kept final : public ports::LogSink {
 public:
  void write(std::string_view line) override { lines.emplace_back(line); }
  std::vector<std::string> lines;
};

TEST(TextLog, SettingsHoldFromTheNextLineOn) {
  Kept kept;
  ports::testing::ManualClock clock;
  TextLog log(kept, clock, ports::LogLevel::kWarning);
  EXPECT_EQ(log.settings(), (LogSettings{.info = false}));
  log.log(ports::LogLevel::kInfo, "one");
  log.apply({.info = true, .warning = false, .verbose_level = 3});
  log.log(ports::LogLevel::kInfo, "two");
  log.log(ports::LogLevel::kWarning, "three");
  log.log(ports::LogLevel::kDebug, "four");
  EXPECT_EQ(log.settings().verbose_level, 3U);
  ASSERT_EQ(kept.lines.size(), 2U);
  EXPECT_TRUE(kept.lines[0].ends_with("two"));
  EXPECT_TRUE(kept.lines[1].ends_with("four"));
}

}  // namespace
}  // namespace baton::adapters::log
