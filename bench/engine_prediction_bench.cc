// The highest rate of Poisson arrivals that an instance engine serves with p99 <= 20 ms, over what
// the simulator predicts from the curve that warm-up measured. The device sleeps, so that what is
// judged is the batching and the threads around it.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "adapters/instances/instance_engine.h"
#include "ports/testing/loop_executor.h"
#include "service/batching/model_dispatcher.h"
#include "service/batching/permits.h"
#include "service/batching/warm_up.h"
#include "service/telemetry/decision_ring.h"
#include "sim/run.h"

namespace {

using namespace baton;
using SteadyTime = std::chrono::steady_clock;

constexpr Duration kObjective = Duration::ms(20);
constexpr double kSeconds = 3;

struct SteadyClock final : ports::Clock {
  [[nodiscard]] Instant now() const override {
    return Instant::from_ns(SteadyTime::now().time_since_epoch().count());
  }
  [[nodiscard]] WallTime wall() const override { return {}; }
};

struct SleepingInstance final : ports::RuntimeInstance {
  Result<ports::BatchResult, ports::RunFailure> run(
      std::span<const InferRequest* const> members) override {
    std::this_thread::sleep_for(std::chrono::nanoseconds(curve.predict(members.size()).ns()));
    ports::BatchResult result;
    for (const InferRequest* member : members) result.results.push_back({member->inputs, {}});
    return result;
  }
  void terminate() override {}
  LatencyCurve curve = sim::mlp_curve();
};

struct Latencies final : ports::EngineEvents {
  void on_end(ports::CallId, ports::EngineEnd end) override {
    all.push_back(end.timings.ended - end.timings.queued);
  }
  std::vector<Duration> all;
};

Duration p99_at(adapters::InstanceEngine& engine, double rate) {
  Random random(3);
  ports::testing::LoopExecutor loop;
  Latencies latencies;
  const auto request = std::make_shared<const InferRequest>();
  const auto count = static_cast<size_t>(rate * kSeconds);
  auto due = SteadyTime::now();
  for (size_t i = 0; i < count; ++i) {
    due += std::chrono::nanoseconds(static_cast<int64_t>(random.exponential(1e9 / rate)));
    if (SteadyTime::now() < due) {
      loop.run_ready();
      std::this_thread::sleep_until(due);
    }
    engine.start({.request = request, .home = &loop}, latencies);
  }
  loop.run_until([&] { return latencies.all.size() == count; });
  std::ranges::sort(latencies.all);
  return latencies.all[count * 99 / 100];
}

}  // namespace

int main() {
  SteadyClock clock;
  ModelConfig config;
  config.name = "bench";
  config.max_batch_size = 32;
  config.batching.enabled = true;
  config.inputs = {{.name = "x", .dims = {4}}};
  std::vector<std::unique_ptr<ports::RuntimeInstance>> instances;
  instances.push_back(std::make_unique<SleepingInstance>());
  const auto warm = service::warm_up(instances, config, {}, clock);
  if (!warm) {
    std::fputs(warm.error().message.c_str(), stderr);
    return 1;
  }
  const double predicted = sim::max_rate_within(warm->curve, config, kObjective, 1);
  service::DecisionRing ring;
  service::DispatcherOptions options;
  options.config = config;
  options.curve = warm->curve;
  auto permits =
      std::make_shared<adapters::CpuPermits>(std::make_unique<service::LedgerPermits>(2));
  adapters::InstanceEngine engine(
      std::make_unique<service::ModelDispatcher>(std::move(options), ring), std::move(instances),
      permits, clock, {.name = "bench", .cpus = {}});
  double reached = 0;
  for (double share : {0.8, 0.85, 0.9, 0.95, 1.0}) {
    const Duration p99 = p99_at(engine, share * predicted);
    std::printf("%.2f of the predicted %.0f/s: p99 %.2f ms\n", share, predicted,
                p99.seconds() * 1e3);
    if (p99 > kObjective) break;
    reached = share;
  }
  std::printf("reached %.2f of the prediction (aim: 0.85)\n", reached);
}
