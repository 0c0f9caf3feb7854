#include "service/fleet/model_steward.h"

#include <functional>
#include <utility>

namespace baton::service {
namespace {

using ports::LogLevel;

template <class Combine>
void combine(ports::EngineStats& counts, const ports::EngineStats& other, Combine combine) {
  counts.executions = combine(counts.executions, other.executions);
  counts.executed_items = combine(counts.executed_items, other.executed_items);
  for (size_t i = 0; i < counts.batch_sizes.size(); ++i) {
    counts.batch_sizes[i] = combine(counts.batch_sizes[i], other.batch_sizes[i]);
  }
  if (!other.sequences) return;
  if (!counts.sequences) counts.sequences.emplace();
  counts.sequences->begun = combine(counts.sequences->begun, other.sequences->begun);
  counts.sequences->idle_ended = combine(counts.sequences->idle_ended, other.sequences->idle_ended);
  counts.sequences->lost_steps = combine(counts.sequences->lost_steps, other.sequences->lost_steps);
}

Refusal shutting_down() {
  return {EndReason::kShuttingDown, "the server is shutting down", {}};
}

std::string with_detail(const LoadFailure& failure) {
  return failure.message + (failure.detail.empty() ? "" : ": " + failure.detail);
}

}  // namespace

ModelSteward::ModelSteward(std::string name, const StewardPorts& ports, FleetDirectory& directory,
                           Retirement& retirement, protocol::model_config::Unsupported unsupported)
    : name_(std::move(name)),
      ports_(ports),
      directory_(directory),
      retirement_(retirement),
      unsupported_(unsupported) {}

std::string ModelSteward::label(int64_t version) const {
  return "model " + name_ + " version " + std::to_string(version);
}

void ModelSteward::ask(ModelChange change) {
  const auto refuse = [&](Refusal refusal) {
    if (change.done) change.done(fail(std::move(refusal)));
  };
  if (stopped_) return refuse(shutting_down());
  if (change.by_poll && !waiting_.empty() && waiting_.back().by_poll) waiting_.pop_back();
  if (waiting_.size() == kMostWaitingChanges) {
    return refuse({EndReason::kOverloaded,
                   "so many changes of model \"" + name_ +
                       "\" wait already: " + std::to_string(kMostWaitingChanges),
                   Duration::s(1)});
  }
  waiting_.push_back(std::move(change));
  pump();
}

void ModelSteward::stop() {
  stopped_ = true;
  std::deque<ModelChange> waiting = std::exchange(waiting_, {});
  if (current_ && current_->change.done) {
    std::exchange(current_->change.done, nullptr)(fail(shutting_down()));
  }
  for (ModelChange& change : waiting) {
    if (change.done) change.done(fail(shutting_down()));
  }
}

void ModelSteward::pump() {
  while (!current_ && !waiting_.empty() && leaving_ < kMostLeavingEngines) {
    current_.emplace();
    current_->change = std::move(waiting_.front());
    waiting_.pop_front();
    ++turn_;
    begin();
  }
}

void ModelSteward::begin() {
  ModelChange& change = current_->change;
  forgotten_ = change.kind == ModelChange::Kind::kForget;
  if (change.kind != ModelChange::Kind::kLoad) return unload();
  if (!change.found) return look_up();
  on_found(*std::exchange(change.found, std::nullopt));
}

void ModelSteward::look_up() {
  ports_.chores.run([this, turn = turn_, name = name_,
                     files = std::move(current_->change.command.files)](ports::Cancellation&) {
    Result<ports::FoundModel, LoadFailure> found;
    if (!files.empty()) {
      found = ports_.load.repository.stage(name, files);
    } else if (auto looked = ports_.load.repository.find(name); !looked.has_value()) {
      found = fail(std::move(looked).error());
    } else if (!looked->has_value()) {
      found = fail(LoadFailure{"it stands in no repository"});
    } else {
      found = std::move(**looked);
    }
    ports_.controller.post([this, turn, found = std::move(found)]() mutable {
      if (turn == turn_) on_found(std::move(found));
    });
  });
}

void ModelSteward::on_found(Result<ports::FoundModel, LoadFailure> found) {
  if (!found.has_value()) return fail_model(found.error());
  const ports::LoadCommand& command = current_->change.command;
  ModelPlan plan = plan_model(*found, unsupported_, {command.version, command.config});
  for (const std::string& remark : plan.remarks) {
    ports_.log.log(LogLevel::kWarning, "model " + name_ + ": " + remark);
  }
  if (!plan.problem.empty()) return fail_model({std::move(plan.problem)});
  directory_.edit(name_).reason.clear();
  for (const LoadRequest& request : plan.requests) current_->targets.insert(request.version);
  current_->pending = 1;  // this loop: a version may end within it
  for (LoadRequest& request : plan.requests) start_version(std::move(request));
  after_version();
}

void ModelSteward::start_version(LoadRequest request) {
  const auto stamp = request.model.version_stamps.find(request.version);
  const uint64_t now = stamp == request.model.version_stamps.end() ? 0 : stamp->second;
  const auto served = serving_.find(request.version);
  const bool same_files = served != serving_.end() && served->second.stamp == now;
  const VersionChange change =
      same_files ? compare_configs(served->second.asked, request.config) : VersionChange::kReload;
  if (change == VersionChange::kReload) return load(std::move(request), now);
  if (change == VersionChange::kInstances) return scale(std::move(request));
  served->second.asked = std::move(request.config);
}

template <class Then>
void ModelSteward::on_turn(uint64_t turn, Then then) {
  ports_.controller.post([this, turn, then = std::move(then)]() mutable {
    if (turn == turn_) then();
  });
}

void ModelSteward::scale(LoadRequest request) {
  const int64_t number = request.version;
  const ports::ModelVersion& version = *directory_.version(name_, number);
  ScaleRequest wanted{std::move(request), version.config, version.engine->curve()};
  ++current_->pending;
  ports_.loaders.run([this, turn = turn_, wanted = std::move(wanted),
                      control = ports_.engines.instances_of(version.engine)](
                         ports::Cancellation& cancellation) mutable {
    auto result = scale_version(ports_.load, wanted, control, cancellation);
    control = {};
    on_turn(turn, [this, number = wanted.load.version, asked = std::move(wanted.load.config),
                   result = std::move(result)]() mutable {
      on_scaled(number, std::move(asked), std::move(result));
    });
  });
}

void ModelSteward::on_scaled(int64_t version, std::optional<ModelConfig> asked,
                             Result<ScaledVersion, LoadFailure> result) {
  if (result.has_value()) {
    ports::ModelVersion next = *directory_.version(name_, version);
    next.config = std::move(result->config);
    next.reason.clear();
    ServingVersion& serving = serving_.at(version);
    serving.asked = std::move(asked);
    serving.curve_key = std::move(result->curve_key);
    ports_.log.log(LogLevel::kInfo, label(version) + " has " +
                                        std::to_string(next.config.instance_count) + " instances");
    directory_.set_version(name_, std::move(next));
    directory_.publish();
  } else {
    fail_version(version, result.error());
  }
  after_version();
}

void ModelSteward::load(LoadRequest request, uint64_t stamp) {
  const int64_t number = request.version;
  if (!serving_.contains(number)) {
    ports::ModelVersion version;
    version.model = name_;
    version.version = number;
    version.config = request.config.value_or(ModelConfig());
    const auto slot = ports_.telemetry.slot_for(name_, number);
    if (!slot) {
      current_->failures.emplace_back("the process has served its limit of model versions");
      directory_.edit(name_).reason = current_->failures.back();
      return;
    }
    version.metrics_slot = *slot;
    version.state = ModelState::kLoading;
    version.earlier = earlier_[number];
    directory_.set_version(name_, std::move(version));
    directory_.publish();
  }
  ++current_->pending;
  ports_.loaders.run(
      [this, turn = turn_, request = std::move(request), stamp](ports::Cancellation& cancellation) {
        const int64_t number = request.version;
        auto result = load_version(
            ports_.load, request, [&] { on_turn(turn, [this, number] { on_warming(number); }); },
            cancellation);
        if (!result.has_value()) ports_.load.runtime.give_back_memory();
        ServingVersion serving{stamp, request.config, {}};
        on_turn(turn,
                [this, number, serving = std::move(serving), result = std::move(result)]() mutable {
                  on_loaded(number, std::move(serving), std::move(result));
                });
      });
}

void ModelSteward::on_warming(int64_t version) {
  if (serving_.contains(version)) return;  // it is ready, whatever comes of its successor
  ports::ModelVersion next = *directory_.version(name_, version);
  next.state = ModelState::kWarming;
  directory_.set_version(name_, std::move(next));
  directory_.publish();
}

void ModelSteward::on_loaded(int64_t version, ServingVersion serving,
                             Result<ports::LoadedVersion, LoadFailure> result) {
  if (result.has_value()) {
    serve(version, std::move(serving), std::move(*result));
  } else {
    fail_version(version, result.error());
  }
  after_version();
}

void ModelSteward::serve(int64_t version, ServingVersion serving, ports::LoadedVersion loaded) {
  for (const std::string& remark : loaded.remarks) {
    ports_.log.log(LogLevel::kWarning, label(version).append(": ").append(remark));
  }
  ports::ModelVersion next = *directory_.version(name_, version);
  const std::shared_ptr<ports::EnginePort> before = next.engine;
  next.config = loaded.config;
  next.curve = loaded.curve;
  serving.curve_key = loaded.curve_key;
  next.engine = ports_.engines.make(std::move(loaded));
  next.state = ModelState::kReady;
  next.reason.clear();
  serving_[version] = std::move(serving);
  directory_.set_version(name_, std::move(next));
  if (before) {
    retire(version, before);
  } else {
    directory_.publish();
  }
  ports_.log.log(LogLevel::kInfo, label(version) + (before ? " is ready, reloaded" : " is ready"));
}

void ModelSteward::fail_version(int64_t version, const LoadFailure& failure) {
  ports::ModelVersion next = *directory_.version(name_, version);
  const bool serves = next.state == ModelState::kReady;
  next.reason = (serves ? "its reload failed: " : "") + failure.message;
  if (!serves) next.state = ModelState::kFailed;
  const bool stopped = failure.message == kLoadingStopped;
  ports_.log.log(stopped ? LogLevel::kInfo : LogLevel::kError,
                 label(version) + (serves ? " serves on, its reload failed: " : " failed: ") +
                     with_detail(failure));
  directory_.set_version(name_, std::move(next));
  directory_.publish();
  current_->failures.push_back("version " + std::to_string(version) + ": " + failure.message);
}

void ModelSteward::after_version() {
  if (--current_->pending == 0) settle();
}

// Nothing of the model is loaded: no configuration, or none that fits its folder.
void ModelSteward::fail_model(const LoadFailure& failure) {
  ports_.log.log(LogLevel::kError, "model " + name_ + " failed: " + with_detail(failure));
  // A name that a client made up leaves no trace.
  if (directory_.entry(name_) != nullptr || !current_->change.done) {
    directory_.edit(name_).reason = failure.message;
    directory_.publish();
  }
  finish(fail(Refusal{
      EndReason::kInvalid, "failed to load model \"" + name_ + "\": " + failure.message, {}}));
}

// Every version that was to load has, or has failed.
void ModelSteward::settle() {
  const ModelChange& change = current_->change;
  const std::vector<std::string>& failures = current_->failures;
  const auto is_target = [&](int64_t version) { return current_->targets.contains(version); };
  if (failures.empty()) {
    if (!change.command.version) {
      const std::shared_ptr<const ports::ModelEntry> entry = directory_.current().models.at(name_);
      for (const auto& [number, version] : entry->versions) {
        if (is_target(number) || version->state == ModelState::kGone) continue;
        leave(number, "the version policy does not pick it any more");
      }
    }
    directory_.edit(name_).started = true;
  }
  directory_.publish();
  if (failures.empty()) return finish({});
  std::string why;
  for (const std::string& failure : failures) why += (why.empty() ? "" : "; ") + failure;
  finish(fail(Refusal{EndReason::kInvalid, "failed to load model \"" + name_ + "\": " + why, {}}));
}

void ModelSteward::unload() {
  const ModelChange& change = current_->change;
  const ports::ModelEntry* entry = directory_.entry(name_);
  std::vector<int64_t> versions;
  if (entry != nullptr) {
    for (const auto& [number, version] : entry->versions) {
      if (!change.version || *change.version == number) versions.push_back(number);
    }
  }
  if (versions.empty() && change.kind == ModelChange::Kind::kUnload) {
    const std::string which =
        change.version ? "version " + std::to_string(*change.version) + " of " : std::string();
    return finish(
        fail(Refusal{EndReason::kInvalid, which + "model \"" + name_ + "\" was never loaded", {}}));
  }
  for (int64_t version : versions) leave(version, "unloaded");
  if (entry != nullptr) {
    ports::ModelEntry& left = directory_.edit(name_);
    left.reason.clear();
    left.started = true;  // it is gone on purpose
  }
  directory_.publish();
  finish({});
}

// A version that is not to serve: no request finds it from the next publication on.
void ModelSteward::leave(int64_t version, const std::string& reason) {
  ports::ModelVersion next = *directory_.version(name_, version);
  const std::shared_ptr<ports::EnginePort> engine = std::exchange(next.engine, nullptr);
  next.state = engine ? ModelState::kDraining : ModelState::kGone;
  next.reason = reason;
  next.curve = {};
  serving_.erase(version);
  directory_.set_version(name_, std::move(next));
  if (!engine) return;
  ports_.log.log(LogLevel::kInfo, label(version) + " is leaving: " + reason);
  retire(version, engine);
}

// Publishes: nobody is to find the engine any more.
void ModelSteward::retire(int64_t version, std::shared_ptr<ports::EnginePort> engine) {
  const ports::EngineStats so_far = engine->stats();
  const auto count = [this, version](const ports::EngineStats& stats, auto how) {
    combine(earlier_[version], stats, how);
    const ports::ModelVersion* place = directory_.version(name_, version);
    if (place == nullptr) return;
    ports::ModelVersion next = *place;
    next.earlier = earlier_[version];
    directory_.set_version(name_, std::move(next));
  };
  count(so_far, std::plus<>());
  directory_.publish();
  engine->expect_no_more();
  ++leaving_;
  retirement_.retire(std::move(engine),
                     [this, version, so_far, count](const ports::EngineStats& in_all) {
                       count(so_far, std::minus<>());
                       count(in_all, std::plus<>());
                       --leaving_;
                       const ports::ModelVersion* place = directory_.version(name_, version);
                       if (place != nullptr && place->state == ModelState::kDraining) {
                         ports::ModelVersion next = *place;
                         next.state = ModelState::kGone;
                         directory_.set_version(name_, std::move(next));
                         ports_.log.log(LogLevel::kInfo, label(version) + " is gone");
                       }
                       if (forgotten_ && idle()) directory_.erase(name_);
                       directory_.publish();
                       pump();
                     });
}

void ModelSteward::finish(Result<void, Refusal> result) {
  ports::RepositoryControl::Done done = std::move(current_->change.done);
  current_.reset();
  if (forgotten_ && idle()) {
    directory_.erase(name_);
    directory_.publish();
  }
  if (done) done(std::move(result));
  pump();
}

std::vector<std::pair<ports::CurveKey, LatencyCurve>> ModelSteward::curves() const {
  std::vector<std::pair<ports::CurveKey, LatencyCurve>> out;
  for (const auto& [number, serving] : serving_) {
    const ports::ModelVersion* version = directory_.version(name_, number);
    if (version != nullptr && version->engine) {
      out.emplace_back(serving.curve_key, version->engine->curve());
    }
  }
  return out;
}

}  // namespace baton::service
