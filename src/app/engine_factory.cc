#include "app/engine_factory.h"

#include <algorithm>
#include <utility>

#include "adapters/instances/hand_over.h"
#include "base/check.h"
#include "service/batching/dispatcher_setup.h"
#include "service/batching/model_dispatcher.h"
#include "service/batching/permits.h"
#include "service/sequences/sequence_keeper.h"

namespace baton::app {

// Decisions kept in memory per model version.
constexpr size_t kRing = 1024;
// Records on their way to the file, 4.5 MB a model version: half a second of 10,000 requests a
// second, while the file is written every 20 ms.
constexpr size_t kFileRing = 32'768;
// How late a sequence may end that became idle after the last look.
constexpr Duration kLookForIdle = Duration::ms(50);
// The same of the first one of a server that had no model with sequences.
constexpr Duration kLookForSequences = Duration::s(1);

// Destroyed from the bottom up: the engine with its instances before the runtime that they use.
struct InProcessEngines::Served {
  // `load` counts the engines that this version has had.
  Served(size_t file_records, const service::DispatcherOptions& options, int64_t version,
         uint64_t load)
      : decisions(kRing, file_records), file(make_file(options, version, load)) {}
  service::DecisionFile make_file(const service::DispatcherOptions& options, int64_t version,
                                  uint64_t load) {
    auto writer = protocol::decision_log::LineWriter::of_model(options.config.name, version, load);
    std::string setup = writer.setup(service::setup_of(options));
    return {decisions, std::move(writer), std::move(setup)};
  }
  std::shared_ptr<ports::ModelRuntime> runtime;
  service::DecisionRing decisions;
  service::DecisionFile file;
  [[nodiscard]] ports::EnginePort* port() const {
    if (sequences) return sequences.get();
    return engine.get();
  }
  std::unique_ptr<adapters::InstanceEngine> engine;
  std::unique_ptr<adapters::SequenceEngine> sequences;  // in front of it; null: there are none
};

InProcessEngines::InProcessEngines(const ServerConfig& config, const ports::Clock& clock,
                                   ports::Log& log, uint32_t cpus)
    : config_(config),
      clock_(clock),
      log_(log),
      cpus_(cpus),
      hand_over_(adapters::measure_hand_over(clock)) {
  const uint32_t permits = config.cpu_permits != 0 ? config.cpu_permits : cpus;
  permits_ =
      std::make_shared<adapters::CpuPermits>(std::make_unique<service::LedgerPermits>(permits));
}

std::shared_ptr<ports::EnginePort> InProcessEngines::make(ports::LoadedVersion loaded) {
  service::DispatcherOptions options;
  options.config = loaded.config;
  options.limits = config_.limits.queue;
  options.curve = std::move(loaded.curve);
  options.rank.ageing = config_.limits.priority_ageing;
  // Beyond the ageing, a level would be passed before its time.
  options.rank.patience = std::min(options.rank.patience, options.rank.ageing);
  // A run that may last longer than predicted would hold up its worker's other clients.
  options.hand_over = loaded.steady_runs ? hand_over_ : Duration();
  const size_t file_records = config_.log.decisions.empty() ? 0 : kFileRing;
  const uint64_t load = ++loads_[{loaded.config.name, loaded.version}];
  auto served = std::make_shared<Served>(file_records, options, loaded.version, load);
  served->runtime = std::move(loaded.runtime);
  auto dispatcher =
      std::make_unique<service::ModelDispatcher>(std::move(options), served->decisions);
  adapters::InstanceEngineOptions engine_options;
  engine_options.name = loaded.config.name;
  if (config_.pin_instances) {
    // Each engine begins at another CPU, so that first instances do not share one.
    for (uint32_t i = 0; i < cpus_; ++i) {
      engine_options.cpus.push_back(static_cast<int>((served_.size() + i) % cpus_));
    }
  }
  served->engine = std::make_unique<adapters::InstanceEngine>(
      std::move(dispatcher), std::move(loaded.instances), permits_, clock_, engine_options);
  if (loaded.config.sequences) {
    service::SequenceKeeperOptions keeper;
    keeper.config = std::move(loaded.config);
    served->sequences = std::make_unique<adapters::SequenceEngine>(
        std::make_unique<service::SequenceKeeper>(std::move(keeper)), *served->engine, clock_);
  }
  served_.push_back(served);
  if (config_.pin_instances) report_placements(*served);
  ports::EnginePort* engine = served->port();
  return {std::move(served), engine};
}

void InProcessEngines::report_placements(const Served& served) const {
  for (const adapters::Placement& placement : served.engine->placements()) {
    std::string cpus;
    for (int cpu : placement.cpus) cpus += " " + std::to_string(cpu);
    log_.log(placement.pinned_as_asked ? ports::LogLevel::kInfo : ports::LogLevel::kWarning,
             "instance thread " + placement.thread +
                 (placement.pinned_as_asked ? " is pinned to CPU" : " could not be pinned: CPUs") +
                 cpus);
  }
}

InProcessEngines::ServedList::iterator InProcessEngines::find(
    const std::shared_ptr<ports::EnginePort>& engine) {
  const auto found = std::ranges::find_if(
      served_, [&](const auto& served) { return served->port() == engine.get(); });
  BATON_CHECK(found != served_.end());
  return found;
}

ports::InstanceControl InProcessEngines::instances_of(
    const std::shared_ptr<ports::EnginePort>& engine) {
  const std::shared_ptr<Served> served = *find(engine);
  ports::InstanceControl control;
  control.runtime = served->runtime;
  control.resize = [served](std::vector<std::unique_ptr<ports::RuntimeInstance>> more,
                            uint32_t count) {
    served->engine->add_instances(std::move(more));
    if (served->sequences) served->sequences->set_instances(count);
    served->engine->keep_instances(count);
  };
  return control;
}

std::move_only_function<void()> InProcessEngines::withdraw(
    const std::shared_ptr<ports::EnginePort>& engine) {
  const auto found = find(engine);
  std::shared_ptr<Served> served = std::move(*found);
  served_.erase(found);
  if (decision_log_ != nullptr) missed_ += served->file.write_new(*decision_log_);
  return [served = std::move(served), now = clock_.now()] {
    if (served->sequences) served->sequences->drain(now);
    served->engine->stop(now);
    served->engine->free_instances();
    served->runtime.reset();
  };
}

uint64_t InProcessEngines::write_decisions() {
  if (decision_log_ == nullptr) return 0;
  uint64_t missed = std::exchange(missed_, 0);
  for (const auto& served : served_) missed += served->file.write_new(*decision_log_);
  return missed;
}

Instant InProcessEngines::end_idle_sequences() {
  const Instant now = clock_.now();
  Instant next = now + kLookForSequences;
  for (const auto& served : served_) {
    if (!served->sequences) continue;
    next = std::min({next, now + kLookForIdle, served->sequences->end_idle()});
  }
  return next;
}

void InProcessEngines::expect_no_more() {
  for (const auto& served : served_) served->port()->expect_no_more();
}

void InProcessEngines::stop(Instant deadline) {
  // Steps that wait for their turn need the engines below.
  for (const auto& served : served_) {
    if (served->sequences) served->sequences->drain(deadline);
  }
  std::vector<adapters::InstanceEngine*> engines;
  engines.reserve(served_.size());
  for (const auto& served : served_) engines.push_back(served->engine.get());
  adapters::stop_together(engines, deadline);
}

}  // namespace baton::app
