#include "service/batching/warm_up.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ports/testing/fake_runtime.h"
#include "ports/testing/faulty_runtime.h"
#include "ports/testing/manual_clock.h"
#include "service/batching/compare_outputs.h"
#include "service/batching/synthetic_request.h"

namespace baton::service {
namespace {

using ports::testing::FakeRuntimeInstance;
using ports::testing::FaultyRuntimeInstance;
using Fault = FaultyRuntimeInstance::Fault;

// Echoes, and takes the time that a curve says.
class TimedInstance final : public ports::RuntimeInstance {
 public:
  TimedInstance(ports::testing::ManualClock& clock, LatencyCurve curve)
      : clock_(clock), curve_(std::move(curve)) {}
  Result<ports::BatchResult, ports::RunFailure> run(
      std::span<const InferRequest* const> members) override {
    clock_.advance(curve_.predict(members.size()));
    sizes.push_back(members.size());
    return echo_.run(members);
  }
  void terminate() override {}
  std::vector<size_t> sizes;

 private:
  ports::testing::ManualClock& clock_;
  LatencyCurve curve_;
  FakeRuntimeInstance echo_;
};

struct WarmUp : ::testing::Test {
  WarmUp() {
    config.name = "m";
    config.max_batch_size = 32;
    config.batching.enabled = true;
    config.inputs = {{.name = "x", .type = DataType::kFp32, .dims = {4}}};
    auto timed = std::make_unique<TimedInstance>(clock, LatencyCurve({{1, Duration::us(1000), 1},
                                                                      {2, Duration::us(1200), 1},
                                                                      {4, Duration::us(1600), 1},
                                                                      {8, Duration::us(3100), 1}}));
    instance = timed.get();
    auto faulty_instance = std::make_unique<FaultyRuntimeInstance>(std::move(timed));
    faulty = faulty_instance.get();
    instances.push_back(std::move(faulty_instance));
  }
  Result<WarmUpReport, WarmUpFailure> run() { return warm_up(instances, config, options, clock); }
  [[nodiscard]] bool ran(size_t size) const {
    return std::ranges::count(instance->sizes, size) > 0;
  }

  ports::testing::ManualClock clock;
  ModelConfig config;
  WarmUpOptions options;
  TimedInstance* instance = nullptr;
  FaultyRuntimeInstance* faulty = nullptr;
  std::vector<std::unique_ptr<ports::RuntimeInstance>> instances;
};

TEST_F(WarmUp, MeasuresTheCurveUntilTheGainEnds) {
  const auto report = run();
  ASSERT_TRUE(report.has_value());
  ASSERT_EQ(report->curve.points().size(), 4U);  // 8 gains 3 % over 4: 16 is not tried
  EXPECT_EQ(report->curve.points()[2].duration, Duration::us(1600));
  EXPECT_TRUE(report->batch_checked);
  EXPECT_FALSE(ran(16));
}

// Another model's loading makes every run of one size slow for a while.
class DisturbedInstance final : public ports::RuntimeInstance {
 public:
  explicit DisturbedInstance(ports::testing::ManualClock& clock) : clock_(clock) {}
  Result<ports::BatchResult, ports::RunFailure> run(
      std::span<const InferRequest* const> members) override {
    const bool slow = members.size() == 4 && ++runs_of_four_ <= 12;
    clock_.advance(Duration::us(1000 + 50 * static_cast<int64_t>(members.size())) * (slow ? 5 : 1));
    return echo_.run(members);
  }
  void terminate() override {}

 private:
  ports::testing::ManualClock& clock_;
  FakeRuntimeInstance echo_;
  int runs_of_four_ = 0;
};

TEST_F(WarmUp, ASizeThatGainsNothingIsComparedWithTheOneBefore) {
  config.max_batch_size = 8;
  instances.clear();
  instances.push_back(std::make_unique<DisturbedInstance>(clock));
  const auto report = run();
  ASSERT_TRUE(report.has_value());
  ASSERT_EQ(report->curve.points().size(), 4U);
  EXPECT_EQ(report->curve.points()[2].duration, Duration::us(1200));
}

TEST_F(WarmUp, MeasuresSingleRunsOfAModelThatDoesNotMerge) {
  config.batching.enabled = false;
  const auto report = run();
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->curve.points().size(), 1U);
}

TEST_F(WarmUp, RunsPreferredSizesBeforeReady) {  // U141
  config.batching.preferred_sizes = {24, 32};
  ASSERT_TRUE(run().has_value());
  EXPECT_TRUE(ran(24));
  EXPECT_TRUE(ran(32));
}

TEST_F(WarmUp, AKnownCurveIsKeptAndItsSizesAreRun) {
  const LatencyCurve known({{1, Duration::us(900), 7}, {16, Duration::us(5000), 7}});
  options.known = &known;
  const auto report = run();
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->curve.points().size(), 2U);
  EXPECT_TRUE(ran(16));
}

TEST_F(WarmUp, WarmsEveryInstance) {
  auto second = std::make_unique<TimedInstance>(clock, LatencyCurve({{1, Duration::us(500), 1}}));
  TimedInstance* other = second.get();
  instances.push_back(std::move(second));
  ASSERT_TRUE(run().has_value());
  EXPECT_GT(std::ranges::count(other->sizes, size_t{4}), 0);
}

TEST_F(WarmUp, RefusesAModelWhoseBatchesAreWrong) {  // server#2135, #2231
  faulty->set(Fault::kOnlyFirstItemRight);
  const auto report = run();
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().kind, WarmUpFailure::Kind::kBatchDiffers);
  EXPECT_NE(report.error().message.find("'OUT0'"), std::string::npos) << report.error().message;
}

TEST_F(WarmUp, RefusesAModelWhoseBatchesFail) {  // server#5334
  faulty->set(Fault::kFailsBatches);
  const auto report = run();
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().kind, WarmUpFailure::Kind::kBatchFails);
}

TEST_F(WarmUp, AModelThatRefusesMadeUpDataLoadsUnmeasured) {
  faulty->set(Fault::kFailsAlways);
  const auto report = run();
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->curve.empty());
  EXPECT_NE(report->not_measured.find("index out of range"), std::string::npos);
}

TEST_F(WarmUp, AModelThatDrawsIsNotCompared) {
  faulty->set(Fault::kDifferentEachTime);
  const auto report = run();
  ASSERT_TRUE(report.has_value());
  EXPECT_FALSE(report->batch_checked);
  EXPECT_FALSE(report->not_checked.empty());
}

TEST_F(WarmUp, AFailingSampleFailsTheLoad) {
  config.warmups = {{.name = "s", .batch_size = 2, .count = 1, .inputs = {{"x", {.dims = {4}}}}}};
  EXPECT_TRUE(run().has_value());
  faulty->set(Fault::kFailsAlways);
  const auto report = run();
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().kind, WarmUpFailure::Kind::kSample);
}

TEST_F(WarmUp,
       SampleFilesAreCheckedAgainstTheirShape) {  // server#6161: length-prefixed, exact count
  config.inputs = {{.name = "x", .type = DataType::kBytes, .dims = {2}}};
  config.warmups = {{.name = "s",
                     .inputs = {{"x",
                                 {.type = DataType::kBytes,
                                  .dims = {2},
                                  .source = WarmupInput::Source::kFile,
                                  .file = "words"}}}}};
  std::map<std::string, std::string> files;
  files["words"] = std::string("\2\0\0\0\xc3\xa9\0\0\0\0", 10);
  options.files = &files;
  EXPECT_TRUE(run().has_value());
  files["words"].pop_back();
  const auto report = run();
  ASSERT_FALSE(report.has_value());
  EXPECT_NE(report.error().message.find("9 bytes"), std::string::npos) << report.error().message;
}

TEST(SyntheticRequest, UsesOneForFreeDimensionsAndSmallIntegers) {
  ModelConfig config;
  config.max_batch_size = 4;
  config.inputs = {{.name = "ids", .type = DataType::kInt64, .dims = {-1, 3}},
                   {.name = "extra", .dims = {2}, .optional = true}};
  Random random(3);
  const auto request = synthetic_request(config, 2, random);
  ASSERT_EQ(request->inputs.size(), 1U);
  EXPECT_EQ(request->inputs[0].shape, (Shape{2, 1, 3}));
  for (std::byte byte : request->inputs[0].data) EXPECT_LE(static_cast<int>(byte), 1);
  config.warmups = {{.name = "s", .inputs = {{"ids", {.dims = {5, 3}}}}}};
  EXPECT_EQ(synthetic_request(config, 1, random)->inputs[0].shape, (Shape{1, 5, 3}));
}

InferResult floats(std::vector<float> values, DataType type = DataType::kFp32) {
  auto kept = std::make_shared<std::vector<float>>(std::move(values));
  InferResult result;
  result.outputs = {{.name = "y",
                     .type = type,
                     .shape = {static_cast<int64_t>(kept->size())},
                     .data = std::as_bytes(std::span(*kept))}};
  result.storage = {kept};
  return result;
}

TEST(FirstDifference, AllowsWhatAnotherOrderOfSumsCosts) {
  EXPECT_FALSE(first_difference(floats({1000, NAN}), floats({1000.05F, NAN})));
  EXPECT_TRUE(first_difference(floats({1000}), floats({1000.5F})));
  EXPECT_FALSE(first_difference(floats({1000}), floats({1000.5F}), 1e-3));
  EXPECT_TRUE(first_difference(floats({1}), floats({NAN}), 1));
  EXPECT_TRUE(first_difference(floats({1}), floats({NAN})));
}

TEST(FirstDifference, IsExactForIntegers) {
  EXPECT_FALSE(first_difference(floats({1}, DataType::kInt32), floats({1}, DataType::kInt32)));
  EXPECT_TRUE(
      first_difference(floats({1}, DataType::kInt32), floats({1.0000001F}, DataType::kInt32)));
}

}  // namespace
}  // namespace baton::service
