#pragma once
// Simulated runs: the services of a live server on a virtual clock, checked after every event.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "base/result.h"
#include "ports/log_sink.h"
#include "sim/checker.h"
#include "sim/scenario.h"

namespace baton::sim {

// Faults planted to show that a run can fail: each breaks what the checker of that name watches.
enum class PlantedFault : uint8_t { kNone, kLost, kDoubled, kLate, kStarved, kLeaked };
[[nodiscard]] std::string_view planted_fault_name(PlantedFault fault);
[[nodiscard]] std::optional<PlantedFault> parse_planted_fault(std::string_view name);

struct ScenarioOptions {
  std::string scenario = "steady";
  uint64_t seed = 1;
  Duration duration{};  // zero: the scenario's own
  PlantedFault fault = PlantedFault::kNone;
  ports::LogSink* decisions = nullptr;  // where the decision log goes; null: nowhere
};

struct ScenarioResult {
  ScenarioOptions options;
  std::string about;
  Duration duration;
  uint64_t trace_hash = 0;  // of every decision and every end
  uint64_t events = 0;
  uint64_t submitted = 0;
  uint64_t refused = 0;
  uint64_t answered = 0;
  uint64_t expired = 0;
  uint64_t cancelled = 0;
  uint64_t failed = 0;
  uint64_t batches = 0;
  uint64_t batch_items = 0;
  Histogram latency;  // of answered requests, from submission
  std::vector<Violation> violations;
  [[nodiscard]] bool passed() const { return violations.empty(); }
  [[nodiscard]] double mean_batch() const;
};

// The error is a sentence: an unknown scenario, with those that there are.
[[nodiscard]] Result<ScenarioResult, std::string> run_scenario(const ScenarioOptions& options);
// A scenario of one's own; `options` names it in reports.
[[nodiscard]] ScenarioResult run_scenario(const Scenario& scenario, const ScenarioOptions& options);

[[nodiscard]] std::string reproduce_command(const ScenarioOptions& options);
[[nodiscard]] std::string render_text(const ScenarioResult& result);
[[nodiscard]] std::string render_json(const ScenarioResult& result);

// The highest rate of Poisson arrivals whose 99th percentile of latency stays at or below
// `objective`, and of which nothing is refused: by bisection to 1 %. Single items, no deadlines;
// `config` gives batching and instances, `curve` the device. With 30 s simulated a rate, two seeds
// agree to about 2 %.
[[nodiscard]] double max_rate_within(const LatencyCurve& curve, const ModelConfig& config,
                                     Duration objective, uint64_t seed,
                                     Duration simulated = Duration::s(30));

}  // namespace baton::sim
