#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "domain/server_config.h"
#include "ports/executor.h"
#include "ports/job_runner.h"
#include "ports/log_sink.h"
#include "ports/model_directory.h"
#include "ports/repository_control.h"
#include "service/fleet/fleet_directory.h"
#include "service/fleet/model_steward.h"
#include "service/fleet/plan_model.h"
#include "service/fleet/retirement.h"
#include "service/fleet/settle_watch.h"
#include "service/telemetry/telemetry.h"

namespace baton::service {

struct FleetPorts {
  LoadPorts load;
  ports::EngineFactory& engines;
  ports::JobRunner& loaders;    // load and warm up
  ports::JobRunner& chores;     // read folders, free engines: short, and not behind a loading model
  ports::Executor& controller;  // where results of jobs are taken up
  ports::Timers& timers;        // of the controller
  ports::Log& log;
  Telemetry& telemetry;
};

struct FleetOptions {
  protocol::model_config::Unsupported unsupported = protocol::model_config::Unsupported::kRefuse;
  std::optional<std::set<std::string>> required;  // absent: every model of the start
  RepositoryConfig repository;
};

// How much refinement a crash may lose.
inline constexpr Duration kSaveCurvesEvery = Duration::s(300);
// Commands of clients that may wait or run at a time.
inline constexpr size_t kMostCommands = 256;
// Of the files that they bring; a single command may bring more.
inline constexpr size_t kMostCommandBytes = 512ULL << 20;

// All models of the process. Owned by the controller thread; what it has of ModelDirectory and
// RepositoryControl on any.
class FleetService final : public ports::ModelDirectory, public ports::RepositoryControl {
 public:
  FleetService(const FleetPorts& ports, FleetOptions options);

  // Scans the repositories and starts loading the models that are to serve from the start on; then
  // polls, in that mode. Error: a repository that cannot be read.
  Result<void, LoadFailure> start();
  // Before start(). Those who keep snapshots; they outlive the last retirement.
  void set_followers(std::vector<ports::DirectoryFollower*> followers) {
    directory_.set_followers(std::move(followers));
  }
  // Readiness turns false, requests are still served; commands of clients end.
  void begin_lame_duck();

  [[nodiscard]] std::shared_ptr<const ports::Directory> snapshot() const override {
    return directory_.snapshot();
  }
  [[nodiscard]] uint64_t generation() const override { return directory_.generation(); }

  void index(bool ready_only, ports::Executor& home, IndexDone done) override;
  void load(ports::LoadCommand command, ports::Executor& home, Done done) override;
  void unload(ports::UnloadCommand command, ports::Executor& home, Done done) override;

  // Writes the curves of all ready versions to the state file, as a job; again every
  // kSaveCurvesEvery.
  void save_curves_periodically();
  // The same at once, on the calling thread, which blocks.
  void save_curves();
  // Versions that are on their way to be ready.
  [[nodiscard]] size_t loading() const;

 private:
  ModelSteward& steward(const std::string& name);
  void start_model(ports::FoundModel found);
  void add_missing(const std::set<std::string>& names, const std::vector<ports::FoundModel>& found);
  [[nodiscard]] bool starts(const std::string& name) const;
  [[nodiscard]] bool is_required(const std::string& name) const;
  void poll_in(Duration wait);
  void poll();
  void on_polled(Result<std::vector<ports::FoundModel>, LoadFailure> found);
  void follow(std::vector<ports::FoundModel> found);
  void command(const std::string& name, ModelChange change);
  void reap(const std::string& name);
  [[nodiscard]] std::optional<Refusal> refuse_command(size_t bytes) const;
  [[nodiscard]] std::vector<std::pair<ports::CurveKey, LatencyCurve>> curves() const;
  static void write_curves(ports::StateStore& store, ports::Log& log,
                           const std::vector<std::pair<ports::CurveKey, LatencyCurve>>& curves);

  FleetPorts ports_;
  FleetOptions options_;
  FleetDirectory directory_;
  Retirement retirement_;
  std::map<std::string, std::unique_ptr<ModelSteward>> stewards_;
  SettleWatch watch_;
  std::string poll_failure_;  // as it was last logged
  size_t commands_ = 0;       // that wait or run
  size_t command_bytes_ = 0;
  bool stopped_ = false;
};

}  // namespace baton::service
