#include "sim/run.h"

#include <gtest/gtest.h>

namespace baton::sim {
namespace {

ScenarioResult run(const std::string& scenario, uint64_t seed, Duration duration,
                   PlantedFault fault = PlantedFault::kNone) {
  const auto result =
      run_scenario({.scenario = scenario, .seed = seed, .duration = duration, .fault = fault});
  EXPECT_TRUE(result.has_value());
  return *result;
}

TEST(RunScenario, EveryNamedScenarioHolds) {
  for (std::string_view name : scenario_names()) {
    const ScenarioResult result = run(std::string(name), 1, Duration::s(5));
    EXPECT_TRUE(result.passed()) << render_text(result);
    EXPECT_GT(result.answered, 0U) << name;
    EXPECT_EQ(result.submitted,
              result.answered + result.refused + result.expired + result.cancelled + result.failed);
  }
}

TEST(RunScenario, AnyKnobsHold) {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    const ScenarioResult result = run("any", seed, Duration::s(2));
    EXPECT_TRUE(result.passed()) << render_text(result);
  }
}

TEST(RunScenario, TheSameSeedGivesTheSameTrace) {
  const ScenarioResult first = run("mixed", 7, Duration::s(5));
  EXPECT_EQ(run("mixed", 7, Duration::s(5)).trace_hash, first.trace_hash);
  EXPECT_NE(run("mixed", 8, Duration::s(5)).trace_hash, first.trace_hash);
}

TEST(RunScenario, AnUnknownNameIsAnswered) {
  const auto result = run_scenario({.scenario = "nope"});
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().find("steady"), std::string::npos);
}

struct Planted {
  PlantedFault fault;
  const char* scenario;
  Violation::Kind kind;
};

class PlantedFaults : public ::testing::TestWithParam<Planted> {};

TEST_P(PlantedFaults, FailTheRun) {
  const Planted& planted = GetParam();
  const ScenarioResult sound = run(planted.scenario, 3, Duration::s(6));
  EXPECT_TRUE(sound.passed()) << render_text(sound);
  const ScenarioResult result = run(planted.scenario, 3, Duration::s(6), planted.fault);
  ASSERT_FALSE(result.passed());
  EXPECT_EQ(result.violations.front().kind, planted.kind) << render_text(result);
  const std::string command = reproduce_command(result.options);
  EXPECT_NE(render_text(result).find(command), std::string::npos);
  EXPECT_NE(command.find("--seed 3"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    , PlantedFaults,
    ::testing::Values(Planted{PlantedFault::kLost, "mixed", Violation::Kind::kLost},
                      Planted{PlantedFault::kDoubled, "mixed", Violation::Kind::kDoubled},
                      Planted{PlantedFault::kLate, "overload", Violation::Kind::kLate},
                      Planted{PlantedFault::kStarved, "overload", Violation::Kind::kStarved},
                      Planted{PlantedFault::kStarved, "flood", Violation::Kind::kStarved},
                      Planted{PlantedFault::kLeaked, "mixed", Violation::Kind::kLeaked}),
    [](const auto& info) {
      return std::string(planted_fault_name(info.param.fault)) + "_" + info.param.scenario;
    });

ModelConfig batching_config(uint32_t max_batch) {
  ModelConfig config;
  config.name = "mlp";
  config.max_batch_size = max_batch;
  config.batching.enabled = max_batch > 1;
  return config;
}

TEST(MaxRateWithin, BatchingServesSeveralTimesWhatSingleRunsDo) {
  const double batched =
      max_rate_within(mlp_curve(), batching_config(32), Duration::ms(20), 1, Duration::s(4));
  const double single =
      max_rate_within(mlp_curve(), batching_config(1), Duration::ms(20), 1, Duration::s(4));
  EXPECT_GT(batched, 5 * single);
  EXPECT_LT(batched, 32 / 6.99e-3);
}

TEST(Overload, ServesWhatTheDeviceCanInTime) {
  // 6,000 a second with deadlines of 25 to 75 ms; the device serves 4,578 at most.
  const ScenarioResult result = run("overload", 1, Duration::s(4));
  EXPECT_GT(result.answered, 4 * 4578 * 85 / 100) << render_text(result);
}

TEST(MixedShapes, ServeAtFourFifthsOfSaturationLikeOne) {  // server#8156
  const auto alternate = [](uint32_t shapes) {
    Scenario scenario{.name = "shapes", .about = "shapes at 80 % of saturation"};
    ModelSpec model;
    model.config = batching_config(32);
    model.device = mlp_curve();
    scenario.models = {model};
    scenario.traffic = {{.arrivals = {.per_second = 0.8 * 32 / 6.99e-3}, .shapes = shapes}};
    return run_scenario(
        scenario, ScenarioOptions{.scenario = "shapes", .seed = 1, .duration = Duration::s(8)});
  };
  const ScenarioResult one = alternate(1);
  const ScenarioResult two = alternate(2);
  EXPECT_GT(two.mean_batch(), 0.9 * one.mean_batch());
  EXPECT_LT(two.latency.quantile(0.99).seconds(), 2 * one.latency.quantile(0.99).seconds());
}

TEST(Arrivals, HaveTheirRates) {
  Random random(5);
  for (ArrivalSpec::Kind kind : {ArrivalSpec::Kind::kPoisson, ArrivalSpec::Kind::kGamma}) {
    Arrivals arrivals({.kind = kind, .per_second = 200, .variation = 3});
    double sum = 0;
    for (int i = 0; i < 100'000; ++i) sum += arrivals.next_gap(random)->seconds();
    EXPECT_NEAR(sum, 500, 15);
  }
  Arrivals bursts({.kind = ArrivalSpec::Kind::kOnOff,
                   .per_second = 1000,
                   .mean_on = Duration::ms(100),
                   .mean_off = Duration::ms(300)});
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) sum += bursts.next_gap(random)->seconds();
  EXPECT_NEAR(sum, 400, 40);
}

TEST(Arrivals, FollowATrace) {
  Random random(5);
  Arrivals arrivals(
      {.kind = ArrivalSpec::Kind::kTrace, .trace = {Duration::ms(2), Duration::ms(5)}});
  EXPECT_EQ(arrivals.next_gap(random), Duration::ms(2));
  EXPECT_EQ(arrivals.next_gap(random), Duration::ms(3));
  EXPECT_EQ(arrivals.next_gap(random), std::nullopt);
}

TEST(Histogram, FindsQuantilesToItsWidth) {
  Histogram histogram;
  for (int i = 1; i <= 10'000; ++i) histogram.add(Duration::us(i));
  EXPECT_NEAR(histogram.quantile(0.99).seconds(), 9.9e-3, 0.2e-3);
  EXPECT_NEAR(histogram.mean().seconds(), 5e-3, 0.01e-3);
}

}  // namespace
}  // namespace baton::sim
