#pragma once
// One model's versions, from what is desired to what serves.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ports/executor.h"
#include "ports/job_runner.h"
#include "ports/log_sink.h"
#include "ports/repository_control.h"
#include "service/fleet/fleet_directory.h"
#include "service/fleet/load_version.h"
#include "service/fleet/plan_model.h"
#include "service/fleet/retirement.h"
#include "service/telemetry/telemetry.h"

namespace baton::service {

// What is to become of a model.
struct ModelChange {
  enum class Kind : uint8_t {
    kLoad,    // what its folder or the command says serves, and nothing else
    kUnload,  // nothing of it serves, or not that version
    kForget,  // the same, and its folder is gone
  };
  Kind kind = Kind::kLoad;
  bool by_poll = false;                    // a later one of these takes its place while it waits
  std::optional<ports::FoundModel> found;  // kLoad: its folder as a scan saw it; absent: looked up
  ports::LoadCommand command;              // kLoad
  std::optional<int64_t> version;          // kUnload
  ports::RepositoryControl::Done done;     // on the controller; may be empty
};

struct StewardPorts {
  LoadPorts load;
  ports::EngineFactory& engines;
  ports::JobRunner& loaders;
  ports::JobRunner& chores;  // looks folders up
  ports::Executor& controller;
  ports::Log& log;
  Telemetry& telemetry;
};

// So many changes of one model may wait.
inline constexpr size_t kMostWaitingChanges = 64;
// A model of which so many engines still end their calls waits with its next change: each holds
// memory.
inline constexpr size_t kMostLeavingEngines = 2;

// A version that serves.
struct ServingVersion {
  uint64_t stamp = 0;                // of its files
  std::optional<ModelConfig> asked;  // as the plan had it; absent: derived
  ports::CurveKey curve_key;
};

// A change that is being carried out.
struct RunningChange {
  ModelChange change;
  std::set<int64_t> targets;
  size_t pending = 0;  // versions that load
  std::vector<std::string> failures;
};

// Carries changes out in order, one at a time. A version that serves goes on until its successor
// is warmed up on every instance, and when that fails. Controller thread; outlives its jobs.
class ModelSteward {
 public:
  ModelSteward(std::string name, const StewardPorts& ports, FleetDirectory& directory,
               Retirement& retirement, protocol::model_config::Unsupported unsupported);

  // Ends with `done`, called from within or later.
  void ask(ModelChange change);
  // Tells those who wait that the server is shutting down; what runs ends as its jobs do.
  void stop();
  [[nodiscard]] bool idle() const { return !current_ && waiting_.empty() && leaving_ == 0; }
  // Of the versions that serve.
  [[nodiscard]] std::vector<std::pair<ports::CurveKey, LatencyCurve>> curves() const;

 private:
  void pump();
  void begin();
  void look_up();
  void on_found(Result<ports::FoundModel, LoadFailure> found);
  void start_version(LoadRequest request);
  void load(LoadRequest request, uint64_t stamp);
  // What a job posts: on the controller, unless its change is over.
  template <class Then>
  void on_turn(uint64_t turn, Then then);
  void scale(LoadRequest request);
  void on_scaled(int64_t version, std::optional<ModelConfig> asked,
                 Result<ScaledVersion, LoadFailure> result);
  void on_warming(int64_t version);
  void on_loaded(int64_t version, ServingVersion serving,
                 Result<ports::LoadedVersion, LoadFailure> result);
  void serve(int64_t version, ServingVersion serving, ports::LoadedVersion loaded);
  void fail_version(int64_t version, const LoadFailure& failure);
  void fail_model(const LoadFailure& failure);
  void settle();
  void unload();
  void leave(int64_t version, const std::string& reason);
  void retire(int64_t version, std::shared_ptr<ports::EnginePort> engine);
  void finish(Result<void, Refusal> result);
  void after_version();
  [[nodiscard]] std::string label(int64_t version) const;

  const std::string name_;
  StewardPorts ports_;
  FleetDirectory& directory_;
  Retirement& retirement_;
  const protocol::model_config::Unsupported unsupported_;
  std::map<int64_t, ServingVersion> serving_;
  std::map<int64_t, ports::EngineStats> earlier_;  // what former engines did
  std::deque<ModelChange> waiting_;
  std::optional<RunningChange> current_;
  uint64_t turn_ = 0;   // counts changes: a job's result is for the one that asked
  size_t leaving_ = 0;  // engines
  bool forgotten_ = false;
  bool stopped_ = false;
};

}  // namespace baton::service
