#include "app/sim_command.h"

#include <cstdio>

#include "sim/run.h"

namespace baton::app {

int run_sim(const SimOptions& options) {
  sim::ScenarioOptions scenario;
  scenario.scenario = options.scenario;
  scenario.seed = options.seed;
  scenario.duration = Duration::from_seconds(options.seconds);
  if (!options.fault.empty()) {
    const auto fault = sim::parse_planted_fault(options.fault);
    if (!fault) {
      std::fprintf(stderr, "baton: no fault is called \"%s\"\n", options.fault.c_str());
      return 2;
    }
    scenario.fault = *fault;
  }
  const auto result = sim::run_scenario(scenario);
  if (!result.has_value()) {
    std::fprintf(stderr, "baton: %s\n", result.error().c_str());
    return 2;
  }
  const std::string report =
      options.as_json ? sim::render_json(*result) : sim::render_text(*result);
  std::printf("%s\n", report.c_str());
  return result->passed() ? 0 : 1;
}

}  // namespace baton::app
