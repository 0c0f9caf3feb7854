#include "service/fleet/fleet_service.h"

#include <algorithm>
#include <utility>

#include "service/fleet/index_rows.h"

namespace baton::service {

using ports::LogLevel;

FleetService::FleetService(const FleetPorts& ports, FleetOptions options)
    : ports_(ports),
      options_(std::move(options)),
      retirement_({ports_.load.clock, ports_.timers, ports_.controller, ports_.engines,
                   ports_.chores, ports_.load.runtime},
                  directory_),
      watch_(options_.repository.settle) {}

ModelSteward& FleetService::steward(const std::string& name) {
  auto& place = stewards_[name];
  if (!place) {
    place = std::make_unique<ModelSteward>(
        name,
        StewardPorts{ports_.load, ports_.engines, ports_.loaders, ports_.chores, ports_.controller,
                     ports_.log, ports_.telemetry},
        directory_, retirement_, options_.unsupported);
  }
  return *place;
}

bool FleetService::starts(const std::string& name) const {
  if (options_.repository.control != ControlMode::kExplicit) return true;
  return std::ranges::any_of(options_.repository.startup_models, [&](const std::string& wanted) {
    return wanted == "*" || wanted == name;
  });
}

bool FleetService::is_required(const std::string& name) const {
  return options_.required ? options_.required->contains(name) : starts(name);
}

Result<void, LoadFailure> FleetService::start() {
  BATON_ASSIGN(auto found, ports_.load.repository.scan());
  if (options_.required) add_missing(*options_.required, found);
  if (options_.repository.control == ControlMode::kExplicit) {
    std::set<std::string> names(options_.repository.startup_models.begin(),
                                options_.repository.startup_models.end());
    names.erase("*");
    add_missing(names, found);
  }
  for (const ports::FoundModel& model : found) {
    directory_.edit(model.name).required = is_required(model.name);
  }
  if (options_.repository.control == ControlMode::kPoll) {
    follow(std::move(found));
  } else {
    for (ports::FoundModel& model : found) {
      if (starts(model.name)) start_model(std::move(model));
    }
  }
  directory_.complete();
  directory_.publish();
  return {};
}

void FleetService::add_missing(const std::set<std::string>& names,
                               const std::vector<ports::FoundModel>& found) {
  for (const std::string& name : missing_models(names, found)) {
    ports_.log.log(LogLevel::kError, "model " + name + " failed: " + std::string(kMissingModel));
    ports::ModelEntry& entry = directory_.edit(name);
    entry.required = is_required(name);
    entry.reason = kMissingModel;
  }
}

void FleetService::start_model(ports::FoundModel found) {
  ModelChange change;
  const std::string name = found.name;
  change.found = std::move(found);
  steward(name).ask(std::move(change));
}

void FleetService::poll_in(Duration wait) {
  ports_.timers.arm(ports_.load.clock.now() + wait, [this] { poll(); });
}

void FleetService::poll() {
  if (stopped_) return;
  ports_.chores.run([this](ports::Cancellation&) {
    auto found = ports_.load.repository.scan();
    ports_.controller.post(
        [this, found = std::move(found)]() mutable { on_polled(std::move(found)); });
  });
}

void FleetService::on_polled(Result<std::vector<ports::FoundModel>, LoadFailure> found) {
  if (stopped_) return;
  if (found.has_value()) {
    poll_failure_.clear();
    return follow(std::move(*found));
  }
  // What is served stays: a file system that is away for a moment unloads nothing.
  if (std::exchange(poll_failure_, found.error().message) != found.error().message) {
    ports_.log.log(LogLevel::kError, "polling: " + found.error().message);
  }
  poll_in(options_.repository.poll_every);
}

void FleetService::follow(std::vector<ports::FoundModel> found) {
  SettleWatch::Turn turn = watch_.look(std::move(found), ports_.load.clock.now());
  for (ports::FoundModel& model : turn.changed) {
    ModelChange change;
    const std::string name = model.name;
    change.by_poll = true;
    change.found = std::move(model);
    steward(name).ask(std::move(change));
  }
  for (const std::string& name : turn.removed) {
    ModelChange change;
    change.kind = ModelChange::Kind::kForget;
    change.by_poll = true;
    steward(name).ask(std::move(change));
  }
  const RepositoryConfig& config = options_.repository;
  poll_in(turn.unsettled ? std::min(config.settle, config.poll_every) : config.poll_every);
}

std::optional<Refusal> FleetService::refuse_command(size_t bytes) const {
  if (options_.repository.control != ControlMode::kExplicit) {
    return Refusal{
        EndReason::kNotReady,
        "models are not loaded and unloaded by clients here: `repository.control` is " +
            std::string(options_.repository.control == ControlMode::kPoll ? "poll" : "none") +
            "; it has to be explicit",
        {}};
  }
  if (stopped_) return Refusal{EndReason::kShuttingDown, "the server is shutting down", {}};
  if (commands_ >= kMostCommands) {
    return Refusal{EndReason::kOverloaded,
                   "so many commands wait already: " + std::to_string(kMostCommands),
                   Duration::s(1)};
  }
  if (commands_ > 0 && command_bytes_ + bytes > kMostCommandBytes) {
    return Refusal{EndReason::kOverloaded,
                   "the files of commands that wait are at the limit of " +
                       std::to_string(kMostCommandBytes) + " bytes",
                   Duration::s(1)};
  }
  return std::nullopt;
}

void FleetService::command(const std::string& name, ModelChange change) {
  size_t bytes = 0;
  for (const auto& [file, content] : change.command.files) bytes += content.size();
  if (auto refusal = refuse_command(bytes)) return change.done(fail(std::move(*refusal)));
  ++commands_;
  command_bytes_ += bytes;
  change.done = [this, name, bytes,
                 done = std::move(change.done)](Result<void, Refusal> result) mutable {
    --commands_;
    command_bytes_ -= bytes;
    ports_.controller.post([this, name] { reap(name); });  // not within its own call
    done(std::move(result));
  };
  steward(name).ask(std::move(change));
}

// Of a name that a client made up nothing is kept.
void FleetService::reap(const std::string& name) {
  const auto found = stewards_.find(name);
  if (found == stewards_.end() || directory_.entry(name) != nullptr) return;
  if (found->second->idle()) stewards_.erase(found);
}

void FleetService::load(ports::LoadCommand command, ports::Executor& home, Done done) {
  ports_.controller.post(
      [this, command = std::move(command), &home, done = std::move(done)]() mutable {
        ModelChange change;
        const std::string name = command.model;
        change.command = std::move(command);
        change.done = [&home, done = std::move(done)](Result<void, Refusal> result) mutable {
          home.post([done = std::move(done), result = std::move(result)]() mutable {
            done(std::move(result));
          });
        };
        this->command(name, std::move(change));
      });
}

void FleetService::unload(ports::UnloadCommand command, ports::Executor& home, Done done) {
  ports_.controller.post(
      [this, command = std::move(command), &home, done = std::move(done)]() mutable {
        ModelChange change;
        change.kind = ModelChange::Kind::kUnload;
        change.version = command.version;
        change.done = [&home, done = std::move(done)](Result<void, Refusal> result) mutable {
          home.post([done = std::move(done), result = std::move(result)]() mutable {
            done(std::move(result));
          });
        };
        this->command(command.model, std::move(change));
      });
}

void FleetService::index(bool ready_only, ports::Executor& home, IndexDone done) {
  const auto answer = [this, ready_only, &home](std::vector<std::string> names, IndexDone then) {
    auto rows = index_rows(*snapshot(), names, ready_only);
    home.post(
        [then = std::move(then), rows = std::move(rows)]() mutable { then(std::move(rows)); });
  };
  if (ready_only) return answer({}, std::move(done));
  ports_.chores.run([this, answer, done = std::move(done)](ports::Cancellation&) mutable {
    auto names = ports_.load.repository.names();
    // Of a repository that cannot be read, what is served is still told.
    answer(names.has_value() ? std::move(*names) : std::vector<std::string>(), std::move(done));
  });
}

std::vector<std::pair<ports::CurveKey, LatencyCurve>> FleetService::curves() const {
  std::vector<std::pair<ports::CurveKey, LatencyCurve>> out;
  for (const auto& [name, steward] : stewards_) {
    for (auto& curve : steward->curves()) out.push_back(std::move(curve));
  }
  return out;
}

void FleetService::write_curves(
    ports::StateStore& store, ports::Log& log,
    const std::vector<std::pair<ports::CurveKey, LatencyCurve>>& curves) {
  for (const auto& [key, curve] : curves) {
    if (curve.empty()) continue;
    if (auto saved = store.save_curve(key, curve); !saved.has_value()) {
      log.log(LogLevel::kWarning, "the curve of " + key.model + ": " + saved.error().message);
    }
  }
}

void FleetService::save_curves_periodically() {
  if (ports_.load.store == nullptr) return;
  ports_.timers.arm(ports_.load.clock.now() + kSaveCurvesEvery, [this] {
    ports_.loaders.run([store = ports_.load.store, log = &ports_.log, curves = curves()](
                           ports::Cancellation&) { write_curves(*store, *log, curves); });
    save_curves_periodically();
  });
}

void FleetService::save_curves() {
  if (ports_.load.store != nullptr) write_curves(*ports_.load.store, ports_.log, curves());
}

void FleetService::begin_lame_duck() {
  stopped_ = true;
  directory_.refuse();
  directory_.publish();
  for (const auto& [name, steward] : stewards_) steward->stop();
}

size_t FleetService::loading() const {
  size_t count = 0;
  for (const auto& [name, entry] : directory_.current().models) {
    for (const auto& [number, version] : entry->versions) {
      const ModelState state = version->state;
      count += static_cast<size_t>(state == ModelState::kLoading || state == ModelState::kWarming);
    }
  }
  return count;
}

}  // namespace baton::service
