#include "service/fleet/fleet_service.h"

#include <utility>

namespace baton::service {

using ports::LogLevel;

FleetService::FleetService(const FleetPorts& ports, FleetOptions options)
    : ports_(ports), options_(std::move(options)) {
  publish();
}

Result<void, LoadFailure> FleetService::start() {
  BATON_ASSIGN(const auto found, ports_.load.repository.scan());
  for (const ports::FoundModel& model : found) add_model(model);
  if (options_.required) {
    for (const std::string& name : missing_models(*options_.required, found)) {
      fail_model(name, std::string(kMissingModel));
    }
  }
  current_.complete = true;
  publish();
  return {};
}

void FleetService::add_model(const ports::FoundModel& found) {
  ModelPlan plan = plan_model(found, options_.unsupported);
  for (const std::string& remark : plan.remarks) {
    ports_.log.log(LogLevel::kWarning, "model " + found.name + ": " + remark);
  }
  if (!plan.problem.empty()) return fail_model(found.name, std::move(plan.problem));
  for (LoadRequest& request : plan.requests) load(std::move(request));
}

void FleetService::load(LoadRequest request) {
  ports::ModelVersion version;
  version.model = request.model.name;
  version.version = request.version;
  version.config = request.config.value_or(ModelConfig());
  const auto slot = ports_.telemetry.slot_for(version.model, version.version);
  if (!slot) return fail_model(version.model, "the process has served its limit of model versions");
  version.metrics_slot = *slot;
  version.state = ModelState::kLoading;
  const std::string name = version.model;
  const int64_t number = version.version;
  set_version(name, std::move(version));
  ports_.jobs.run(
      [this, request = std::move(request), name, number](ports::Cancellation& cancellation) {
        const auto warming = [&] {
          ports_.controller.post([this, name, number] { on_warming(name, number); });
        };
        auto result = load_version(ports_.load, request, warming, cancellation);
        ports_.controller.post([this, name, number, result = std::move(result)]() mutable {
          on_loaded(name, number, std::move(result));
        });
      });
}

void FleetService::on_warming(const std::string& model, int64_t version) {
  ports::ModelVersion next = *current_.models.at(model)->versions.at(version);
  next.state = ModelState::kWarming;
  set_version(model, std::move(next));
  publish();
}

void FleetService::on_loaded(const std::string& model, int64_t version,
                             Result<ports::LoadedVersion, LoadFailure> result) {
  ports::ModelVersion next = *current_.models.at(model)->versions.at(version);
  const std::string label = "model " + model + " version " + std::to_string(version);
  if (result.has_value()) {
    for (const std::string& remark : result->remarks) {
      ports_.log.log(LogLevel::kWarning, std::string(label).append(": ").append(remark));
    }
    next.config = result->config;
    next.curve = result->curve;
    curve_keys_[{model, version}] = result->curve_key;
    next.engine = ports_.engines.make(std::move(*result));
    next.state = ModelState::kReady;
    next.reason.clear();
    ports_.log.log(LogLevel::kInfo, label + " is ready");
  } else {
    next.state = ModelState::kFailed;
    next.reason = result.error().message;
    const std::string& detail = result.error().detail;
    const bool stopped = next.reason == kLoadingStopped;
    ports_.log.log(stopped ? LogLevel::kInfo : LogLevel::kError,
                   label + " failed: " + next.reason + (detail.empty() ? "" : ": " + detail));
  }
  set_version(model, std::move(next));
  publish();
}

void FleetService::fail_model(const std::string& name, std::string reason) {
  ports_.log.log(LogLevel::kError, "model " + name + " failed: " + reason);
  edit(name).reason = std::move(reason);
}

ports::ModelEntry& FleetService::edit(const std::string& model) {
  auto& place = current_.models[model];
  // Published entries are immutable: the copy takes the place of the old one at the next publish().
  auto copy =
      place ? std::make_shared<ports::ModelEntry>(*place) : std::make_shared<ports::ModelEntry>();
  copy->name = model;
  copy->required = !options_.required || options_.required->contains(model);
  ports::ModelEntry& entry = *copy;
  place = std::move(copy);
  return entry;
}

void FleetService::set_version(const std::string& model, ports::ModelVersion version) {
  ports::ModelEntry& entry = edit(model);
  entry.has_been_ready = entry.has_been_ready || version.state == ModelState::kReady;
  const int64_t number = version.version;
  entry.versions[number] = std::make_shared<const ports::ModelVersion>(std::move(version));
}

std::vector<std::pair<ports::CurveKey, LatencyCurve>> FleetService::curves() const {
  std::vector<std::pair<ports::CurveKey, LatencyCurve>> out;
  for (const auto& [place, key] : curve_keys_) {
    const auto& served = current_.models.at(place.first)->versions.at(place.second);
    if (served->engine) out.emplace_back(key, served->engine->curve());
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

void FleetService::save_curves_periodically(ports::Timers& timers) {
  if (ports_.load.store == nullptr) return;
  timers.arm(ports_.load.clock.now() + kSaveCurvesEvery, [this, &timers] {
    ports_.jobs.run([store = ports_.load.store, log = &ports_.log, curves = curves()](
                        ports::Cancellation&) { write_curves(*store, *log, curves); });
    save_curves_periodically(timers);
  });
}

void FleetService::save_curves() {
  if (ports_.load.store != nullptr) write_curves(*ports_.load.store, ports_.log, curves());
}

void FleetService::begin_lame_duck() {
  current_.accepting = false;
  publish();
}

void FleetService::publish() {
  published_.store(std::make_shared<const ports::Directory>(current_), std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
}

std::shared_ptr<const ports::Directory> FleetService::snapshot() const {
  return published_.load(std::memory_order_acquire);
}

size_t FleetService::loading() const {
  size_t count = 0;
  for (const auto& [name, entry] : current_.models) {
    for (const auto& [number, version] : entry->versions) {
      const bool settled =
          version->state == ModelState::kReady || version->state == ModelState::kFailed;
      if (!settled) ++count;
    }
  }
  return count;
}

}  // namespace baton::service
