// Microseconds from start() to on_end() through an instance engine whose model does nothing: on the
// instance's thread, and inline on the caller's.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "adapters/instances/instance_engine.h"
#include "ports/testing/loop_executor.h"
#include "service/batching/model_dispatcher.h"
#include "service/batching/permits.h"
#include "service/telemetry/decision_ring.h"

namespace {

using namespace baton;
using SteadyTime = std::chrono::steady_clock;

struct SteadyClock final : ports::Clock {
  [[nodiscard]] Instant now() const override {
    return Instant::from_ns(SteadyTime::now().time_since_epoch().count());
  }
  [[nodiscard]] WallTime wall() const override { return {}; }
};

struct NothingInstance final : ports::RuntimeInstance {
  Result<ports::BatchResult, ports::RunFailure> run(
      std::span<const InferRequest* const> members) override {
    ports::BatchResult result;
    result.results.resize(members.size());
    return result;
  }
  void terminate() override {}
};

struct Ends final : ports::EngineEvents {
  void on_end(ports::CallId, ports::EngineEnd) override { ++count; }
  uint64_t count = 0;
};

void measure(const char* name, LatencyCurve curve) {
  SteadyClock clock;
  service::DecisionRing ring;
  service::DispatcherOptions options;
  options.config.name = "bench";
  options.config.max_batch_size = 8;
  options.config.batching.enabled = true;
  options.curve = std::move(curve);
  std::vector<std::unique_ptr<ports::RuntimeInstance>> instances;
  instances.push_back(std::make_unique<NothingInstance>());
  auto permits =
      std::make_shared<adapters::CpuPermits>(std::make_unique<service::LedgerPermits>(2));
  adapters::InstanceEngine engine(
      std::make_unique<service::ModelDispatcher>(std::move(options), ring), std::move(instances),
      permits, clock, {.name = "bench", .cpus = {}});
  ports::testing::LoopExecutor loop;
  Ends ends;
  std::vector<double> micros;
  for (uint64_t i = 1; i <= 20'000; ++i) {
    const auto begin = SteadyTime::now();
    engine.start({.request = std::make_shared<const InferRequest>(), .home = &loop}, ends);
    loop.run_until([&] { return ends.count == i; });
    micros.push_back(std::chrono::duration<double, std::micro>(SteadyTime::now() - begin).count());
  }
  std::ranges::sort(micros);
  std::printf("%-20s p50 %7.2f us, p99 %7.2f us\n", name, micros[micros.size() / 2],
              micros[micros.size() * 99 / 100]);
}

}  // namespace

int main() {
  measure("instance's thread", {});
  measure("inline", LatencyCurve({{.batch_size = 1, .duration = Duration::us(2), .samples = 9}}));
}
