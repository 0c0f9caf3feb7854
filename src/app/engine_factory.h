#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/instances/cpu_permits.h"
#include "adapters/instances/instance_engine.h"
#include "adapters/instances/sequence_engine.h"
#include "domain/server_config.h"
#include "ports/engine_factory.h"
#include "ports/log_sink.h"
#include "service/telemetry/decision_ring.h"

namespace baton::app {

// Puts loaded versions behind a dispatcher and its instance threads. Controller thread.
class InProcessEngines final : public ports::EngineFactory {
 public:
  InProcessEngines(const ServerConfig& config, const ports::Clock& clock, ports::Log& log,
                   uint32_t cpus);
  std::shared_ptr<ports::EnginePort> make(ports::LoadedVersion loaded) override;
  ports::InstanceControl instances_of(const std::shared_ptr<ports::EnginePort>& engine) override;
  std::move_only_function<void()> withdraw(
      const std::shared_ptr<ports::EnginePort>& engine) override;
  // Where the last decisions of an engine go that is withdrawn; outlives it.
  void set_decision_log(ports::LogSink& sink) { decision_log_ = &sink; }
  // Writes the decisions that are new since the last call, and how many records were missed.
  // Without a decision log: no effect.
  uint64_t write_decisions();
  // Ends sequences that have been idle for too long. Returns when to call again.
  Instant end_idle_sequences();
  // The server is about to stop.
  void expect_no_more();
  // Stops every engine: what is queued and running is served until `deadline`. Blocks.
  void stop(Instant deadline);

 private:
  struct Served;
  using ServedList = std::vector<std::shared_ptr<Served>>;
  [[nodiscard]] ServedList::iterator find(const std::shared_ptr<ports::EnginePort>& engine);
  void report_placements(const Served& served) const;
  const ServerConfig& config_;
  const ports::Clock& clock_;
  ports::Log& log_;
  const uint32_t cpus_;
  const Duration hand_over_;
  std::shared_ptr<adapters::CpuPermits> permits_;
  ServedList served_;
  std::map<std::pair<std::string, int64_t>, uint64_t> loads_;  // of each version, so far
  ports::LogSink* decision_log_ = nullptr;
  uint64_t missed_ = 0;  // of engines that were withdrawn
};

}  // namespace baton::app
