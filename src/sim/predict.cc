#include <algorithm>

#include "sim/run.h"

namespace baton::sim {
namespace {

bool keeps(const LatencyCurve& curve, const ModelConfig& config, Duration objective,
           const ScenarioOptions& options, double rate) {
  Scenario scenario{.name = "predict", .about = "Poisson arrivals at one rate"};
  ModelSpec model;
  model.config = config;
  model.device = curve;
  scenario.models = {model};
  scenario.traffic = {{.arrivals = {.per_second = rate}}};
  const ScenarioResult result = run_scenario(scenario, options);
  return result.refused == 0 && result.latency.quantile(0.99) <= objective;
}

}  // namespace

double max_rate_within(const LatencyCurve& curve, const ModelConfig& config, Duration objective,
                       uint64_t seed, Duration simulated) {
  if (curve.empty() || curve.predict(1) <= Duration()) return 0;
  const ScenarioOptions options{.scenario = "predict", .seed = seed, .duration = simulated};
  // No batch serves more than every instance running its best size without pause.
  double best = 0;
  for (const CurvePoint& point : curve.points()) {
    best = std::max(best, static_cast<double>(point.batch_size) / point.duration.seconds());
  }
  double low = 0;
  double high = best * static_cast<double>(std::max(config.instance_count, 1U));
  while (high - low > 0.01 * high) {
    const double middle = (low + high) / 2;
    (keeps(curve, config, objective, options, middle) ? low : high) = middle;
    if (high < 0.1) break;
  }
  return low;
}

}  // namespace baton::sim
