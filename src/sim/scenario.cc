#include "sim/scenario.h"

#include <algorithm>
#include <array>

namespace baton::sim {
namespace {

ModelSpec batching_model(std::string name) {
  ModelSpec model;
  model.config.name = std::move(name);
  model.config.max_batch_size = 32;
  model.config.batching.enabled = true;
  model.device = mlp_curve();
  model.noise = 0.05;
  return model;
}

Scenario steady() {
  Scenario scenario{.name = "steady", .about = "an hour of Poisson arrivals, 100 a second"};
  scenario.duration = Duration::s(3600);
  scenario.models = {batching_model("mlp")};
  scenario.traffic = {{.arrivals = {.per_second = 100}, .deadline = Duration::ms(200)}};
  return scenario;
}

Scenario bursty() {
  Scenario scenario{.name = "bursty", .about = "an hour of bursts above what the device serves"};
  scenario.duration = Duration::s(3600);
  scenario.models = {batching_model("mlp")};
  ArrivalSpec arrivals{.kind = ArrivalSpec::Kind::kOnOff, .per_second = 5000};
  arrivals.mean_on = Duration::ms(40);
  arrivals.mean_off = Duration::ms(1960);
  scenario.traffic = {{.arrivals = arrivals,
                       .deadline = Duration::ms(100),
                       .cancel = 0.01,
                       .cancel_after = Duration::ms(10)}};
  return scenario;
}

Scenario mixed() {
  Scenario scenario{.name = "mixed", .about = "shapes, sizes, levels, deadlines and cancellations"};
  ModelSpec model = batching_model("mlp");
  model.config.batching.max_delay = Duration::ms(3);
  model.config.batching.priority_levels = 3;
  model.config.batching.default_priority_level = 2;
  model.config.batching.level_policies[3].max_queue_size = 200;
  model.config.instance_count = 2;
  model.failure = 0.001;
  scenario.models = {model};
  ArrivalSpec arrivals{.kind = ArrivalSpec::Kind::kGamma, .per_second = 1500, .variation = 3};
  scenario.traffic = {{.arrivals = arrivals,
                       .shapes = 4,
                       .most_items = 4,
                       .levels = 3,
                       .deadline = Duration::ms(60),
                       .cancel = 0.05,
                       .cancel_after = Duration::ms(8)}};
  return scenario;
}

Scenario overload() {
  Scenario scenario{.name = "overload", .about = "one and a half times what the device serves"};
  ModelSpec model = batching_model("mlp");
  model.config.batching.priority_levels = 2;
  model.limits.max_items = 2000;
  scenario.models = {model};
  TrafficSpec urgent{.arrivals = {.per_second = 6000}, .deadline = Duration::ms(50)};
  TrafficSpec patient{.arrivals = {.per_second = 20}, .first_level = 2};
  scenario.traffic = {urgent, patient};
  scenario.starvation_bound = Duration::s(4);
  return scenario;
}

Scenario flood() {
  Scenario scenario{
      .name = "flood",
      .about = "more of the highest level than is served, and a little of the lowest"};
  ModelSpec model = batching_model("mlp");
  model.config.batching.priority_levels = 3;
  model.config.batching.default_priority_level = 3;
  model.limits.max_items = 2000;
  scenario.models = {model};
  TrafficSpec urgent{.arrivals = {.per_second = 6000}};
  TrafficSpec lowest{.arrivals = {.per_second = 5}, .first_level = 3};
  scenario.traffic = {urgent, lowest};
  // Patience and two levels' ageing, then the 0.44 s that 2000 rows take.
  scenario.starvation_bound = Duration::ms(3500);
  return scenario;
}

Scenario ordered() {
  Scenario scenario{.name = "ordered", .about = "answers keep their order over three instances"};
  ModelSpec model = batching_model("mlp");
  model.config.batching.preserve_ordering = true;
  model.config.batching.default_policy.timeout = Duration::ms(40);
  model.config.instance_count = 3;
  model.noise = 0.5;
  model.failure = 0.01;
  scenario.models = {model};
  scenario.permits = 3;
  scenario.traffic = {{.arrivals = {.per_second = 1500},
                       .shapes = 3,
                       .most_items = 4,
                       .deadline = Duration::ms(80),
                       .cancel = 0.05,
                       .cancel_after = Duration::ms(8)}};
  return scenario;
}

Scenario models() {
  Scenario scenario{.name = "models", .about = "four models share two permits"};
  for (int i = 0; i < 4; ++i) {
    ModelSpec model = batching_model("m" + std::to_string(i));
    if (i == 3) {  // too short for a hand-over
      model.device = LatencyCurve({{.batch_size = 1, .duration = Duration::us(4), .samples = 9},
                                   {.batch_size = 32, .duration = Duration::us(60), .samples = 9}});
    }
    model.measured = i != 2;
    scenario.models.push_back(std::move(model));
    scenario.traffic.push_back({.model = static_cast<size_t>(i),
                                .arrivals = {.per_second = 250},
                                .deadline = Duration::ms(100)});
  }
  return scenario;
}

// Every knob from its range.
Scenario any(uint64_t seed) {
  Random random(seed, 9);
  const auto one_of = [&](auto... values) {
    const std::array options{values...};
    return options[random.below(options.size())];
  };
  Scenario scenario{.name = "any", .about = "every knob drawn from the seed"};
  scenario.duration = Duration::s(20);
  scenario.permits = one_of(1U, 2U, 4U);
  scenario.hand_over = Duration::us(one_of(0, 15, 60));
  const size_t count = 1 + random.below(3);
  for (size_t i = 0; i < count; ++i) {
    ModelSpec model = batching_model("m" + std::to_string(i));
    model.config.max_batch_size = one_of(0U, 1U, 4U, 32U);
    model.config.batching.enabled = random.chance(0.8);
    model.config.instance_count = one_of(1U, 2U, 3U);
    model.config.batching.max_delay = Duration::ms(one_of(0, 0, 2, 20));
    if (random.chance(0.3)) model.config.batching.preferred_sizes = {2, 4};
    model.config.batching.priority_levels = one_of(0U, 1U, 3U);
    model.config.batching.default_policy.timeout = Duration::ms(one_of(0, 0, 30));
    model.config.batching.default_policy.max_queue_size = one_of(0U, 0U, 50U);
    model.limits.max_items = one_of(20U, 500U, 8192U);
    model.measured = random.chance(0.7);
    model.noise = one_of(0.0, 0.05, 0.5);
    model.failure = one_of(0.0, 0.01);
    const uint64_t most = std::max(model.config.max_batch_size, 1U);
    TrafficSpec traffic{.model = i};
    traffic.arrivals.kind = one_of(ArrivalSpec::Kind::kPoisson, ArrivalSpec::Kind::kGamma);
    traffic.arrivals.variation = 3;
    traffic.arrivals.per_second = one_of(10.0, 300.0, 1000.0, 4000.0);
    traffic.shapes = one_of(1U, 2U, 7U);
    traffic.most_items = std::min<uint64_t>(one_of(1U, 3U), most);
    traffic.levels = one_of(1U, 3U);
    traffic.deadline = Duration::ms(one_of(0, 20, 300));
    traffic.cancel = one_of(0.0, 0.2);
    traffic.cancel_after = Duration::ms(5);
    auto& batching = model.config.batching;
    batching.preserve_ordering = batching.priority_levels <= 1 && random.chance(0.2);
    if (!batching.preserve_ordering && random.chance(0.3)) {
      batching.default_policy.timeout_action = TimeoutAction::kDelay;
    }
    scenario.models.push_back(std::move(model));
    scenario.traffic.push_back(traffic);
  }
  return scenario;
}

}  // namespace

std::optional<Duration> Arrivals::next_gap(Random& random) {
  const double mean = 1 / spec_.per_second;
  switch (spec_.kind) {
    case ArrivalSpec::Kind::kPoisson:
      return Duration::from_seconds(random.exponential(mean));
    case ArrivalSpec::Kind::kGamma: {
      const double shape = 1 / (spec_.variation * spec_.variation);
      return Duration::from_seconds(random.gamma(shape, mean / shape));
    }
    case ArrivalSpec::Kind::kOnOff:
      return on_off_gap(random);
    case ArrivalSpec::Kind::kTrace:
      break;
  }
  if (next_ >= spec_.trace.size()) return std::nullopt;
  const Duration before = next_ == 0 ? Duration() : spec_.trace[next_ - 1];
  return spec_.trace[next_++] - before;
}

Duration Arrivals::on_off_gap(Random& random) {
  Duration passed;
  while (true) {
    const Duration gap = Duration::from_seconds(random.exponential(1 / spec_.per_second));
    if (gap <= on_left_) {
      on_left_ = on_left_ - gap;
      return passed + gap;
    }
    passed += on_left_ + Duration::from_seconds(random.exponential(spec_.mean_off.seconds()));
    on_left_ = Duration::from_seconds(random.exponential(spec_.mean_on.seconds()));
  }
}

LatencyCurve mlp_curve() {
  return LatencyCurve({{.batch_size = 1, .duration = Duration::us(1305), .samples = 5},
                       {.batch_size = 2, .duration = Duration::us(1550), .samples = 5},
                       {.batch_size = 4, .duration = Duration::us(1905), .samples = 5},
                       {.batch_size = 8, .duration = Duration::us(2700), .samples = 5},
                       {.batch_size = 16, .duration = Duration::us(4200), .samples = 5},
                       {.batch_size = 32, .duration = Duration::us(6990), .samples = 5}});
}

std::vector<std::string_view> scenario_names() {
  return {"steady", "bursty", "mixed", "overload", "flood", "ordered", "models", "any"};
}

std::optional<Scenario> named_scenario(std::string_view name, uint64_t seed) {
  if (name == "steady") return steady();
  if (name == "bursty") return bursty();
  if (name == "mixed") return mixed();
  if (name == "overload") return overload();
  if (name == "flood") return flood();
  if (name == "ordered") return ordered();
  if (name == "models") return models();
  if (name == "any") return any(seed);
  return std::nullopt;
}

}  // namespace baton::sim
