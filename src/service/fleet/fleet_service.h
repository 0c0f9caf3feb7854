#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ports/executor.h"
#include "ports/job_runner.h"
#include "ports/log_sink.h"
#include "ports/model_directory.h"
#include "service/fleet/plan_model.h"
#include "service/telemetry/telemetry.h"

namespace baton::service {

struct FleetPorts {
  LoadPorts load;
  ports::EngineFactory& engines;
  ports::JobRunner& jobs;
  ports::Executor& controller;  // where results of jobs are taken up
  ports::Log& log;
  Telemetry& telemetry;
};

struct FleetOptions {
  protocol::model_config::Unsupported unsupported = protocol::model_config::Unsupported::kRefuse;
  std::optional<std::set<std::string>> required;  // absent: every model that is found
};

// How much refinement a crash may lose.
inline constexpr Duration kSaveCurvesEvery = Duration::s(300);

// All models of the process. Owned by the controller thread; snapshot() and generation() on any.
class FleetService final : public ports::ModelDirectory {
 public:
  FleetService(const FleetPorts& ports, FleetOptions options);

  // Scans the repositories and starts loading every model. Error: a repository that cannot be read.
  Result<void, LoadFailure> start();
  // Readiness turns false, requests are still served.
  void begin_lame_duck();

  [[nodiscard]] std::shared_ptr<const ports::Directory> snapshot() const override;
  [[nodiscard]] uint64_t generation() const override {
    return generation_.load(std::memory_order_acquire);
  }
  // Writes the curves of all ready versions to the state file, as a job; again every
  // kSaveCurvesEvery.
  void save_curves_periodically(ports::Timers& timers);
  // The same at once, on the calling thread, which blocks.
  void save_curves();
  // Versions that are neither ready nor failed.
  [[nodiscard]] size_t loading() const;

 private:
  void add_model(const ports::FoundModel& found);
  void fail_model(const std::string& name, std::string reason);
  void load(LoadRequest request);
  void on_warming(const std::string& model, int64_t version);
  void on_loaded(const std::string& model, int64_t version,
                 Result<ports::LoadedVersion, LoadFailure> result);
  void set_version(const std::string& model, ports::ModelVersion version);
  ports::ModelEntry& edit(const std::string& model);
  void publish();
  [[nodiscard]] std::vector<std::pair<ports::CurveKey, LatencyCurve>> curves() const;
  static void write_curves(ports::StateStore& store, ports::Log& log,
                           const std::vector<std::pair<ports::CurveKey, LatencyCurve>>& curves);

  FleetPorts ports_;
  FleetOptions options_;
  std::map<std::pair<std::string, int64_t>, ports::CurveKey> curve_keys_;  // of ready versions
  ports::Directory current_;  // what publish() hands out
  std::atomic<std::shared_ptr<const ports::Directory>> published_;
  std::atomic<uint64_t> generation_{0};
};

}  // namespace baton::service
