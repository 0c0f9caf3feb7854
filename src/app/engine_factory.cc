#include "app/engine_factory.h"

#include <utility>

#include "service/batching/model_dispatcher.h"
#include "service/batching/permits.h"

namespace baton::app {

// Destroyed from the bottom up: the engine with its instances before the runtime that they use.
struct InProcessEngines::Served {
  std::unique_ptr<ports::ModelRuntime> runtime;
  service::DecisionRing decisions;
  std::unique_ptr<adapters::InstanceEngine> engine;
};

InProcessEngines::InProcessEngines(const ServerConfig& config, const ports::Clock& clock,
                                   uint32_t cpus)
    : config_(config), clock_(clock), cpus_(cpus) {
  const uint32_t permits = config.cpu_permits != 0 ? config.cpu_permits : cpus;
  permits_ =
      std::make_shared<adapters::CpuPermits>(std::make_unique<service::LedgerPermits>(permits));
}

std::shared_ptr<ports::EnginePort> InProcessEngines::make(ports::LoadedVersion loaded) {
  auto served = std::make_shared<Served>();
  served->runtime = std::move(loaded.runtime);
  service::DispatcherOptions options;
  options.config = loaded.config;
  options.limits = config_.limits.queue;
  options.curve = std::move(loaded.curve);
  auto dispatcher =
      std::make_unique<service::ModelDispatcher>(std::move(options), served->decisions);
  adapters::InstanceEngineOptions engine_options;
  engine_options.name = loaded.config.name;
  if (config_.pin_instances) {
    for (uint32_t cpu = 0; cpu < cpus_; ++cpu) engine_options.cpus.push_back(static_cast<int>(cpu));
  }
  served->engine = std::make_unique<adapters::InstanceEngine>(
      std::move(dispatcher), std::move(loaded.instances), permits_, clock_, engine_options);
  served_.push_back(served);
  ports::EnginePort* engine = served->engine.get();
  return {std::move(served), engine};
}

void InProcessEngines::stop(Instant deadline) {
  for (const auto& served : served_) served->engine->stop(deadline);
  served_.clear();
}

}  // namespace baton::app
