#include "policy/estimate/size_trial.h"

#include <gtest/gtest.h>

namespace baton::policy {
namespace {

constexpr uint64_t kPaying = 4;
constexpr uint64_t kMost = 64;

// Full batches until a trial is due.
uint32_t pause(SizeTrial& trial) {
  uint32_t batches = 0;
  while (trial.size(kPaying, kMost, 100) == 0 && batches < 10'000) {
    EXPECT_FALSE(trial.on_run(kPaying, Duration::ms(1), kPaying));
    ++batches;
  }
  return batches;
}

std::optional<SizeTrial::Measured> run_trial(SizeTrial& trial) {
  for (int ms : {9, 3, 2}) EXPECT_FALSE(trial.on_run(8, Duration::ms(ms), kPaying));
  return trial.on_run(8, Duration::ms(4), kPaying);
}

TEST(SizeTrial, DoublesThePayingSizeAfterFullBatches) {
  SizeTrial trial;
  EXPECT_EQ(trial.size(kPaying, kMost, 100), 0U);
  EXPECT_EQ(pause(trial), 16U);
  EXPECT_EQ(trial.size(kPaying, kMost, 100), 8U);
  EXPECT_EQ(trial.size(kPaying, 6, 100), 6U);
  EXPECT_EQ(trial.size(kPaying, kPaying, 100), 0U);
}

TEST(SizeTrial, NeedsAQueueThatFillsIt) {
  SizeTrial trial;
  pause(trial);
  EXPECT_EQ(trial.size(kPaying, kMost, 7), 0U);
}

TEST(SizeTrial, SmallBatchesAreNoReason) {
  SizeTrial trial;
  for (int i = 0; i < 100; ++i) trial.on_run(2, Duration::ms(1), kPaying);
  EXPECT_EQ(trial.size(kPaying, kMost, 100), 0U);
}

TEST(SizeTrial, MeasuresTheSecondShortestRun) {
  SizeTrial trial;
  pause(trial);
  const auto measured = run_trial(trial);
  ASSERT_TRUE(measured.has_value());
  EXPECT_EQ(measured->items, 8U);
  EXPECT_EQ(measured->duration, Duration::ms(3));
  EXPECT_EQ(trial.size(kPaying, kMost, 100), 0U);
}

TEST(SizeTrial, WaitsLongerAfterEachThatDidNotPay) {
  SizeTrial trial;
  for (uint32_t expected = 16; expected <= 4096; expected *= 2) {
    EXPECT_EQ(pause(trial), expected);
    run_trial(trial);
    trial.settle(false);
  }
  EXPECT_EQ(pause(trial), 4096U);
  run_trial(trial);
  trial.settle(true);
  EXPECT_EQ(pause(trial), 16U);
}

}  // namespace
}  // namespace baton::policy
