#include "adapters/log/log_writer.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <string>

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

TEST(LogWriter, APathThatCannotBeOpenedIsSaid) {
  EXPECT_EQ(open_log("/no/such/folder/x"), nullptr);
}

}  // namespace
}  // namespace baton::adapters::log
