#include "service/gateway/gateway.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "service/gateway/fit.h"

namespace baton::service {

// One request from infer() to settle(). Lives in the gateway's table; the engine reports to it.
class Gateway::LiveCall final : public ports::EngineEvents {
 public:
  LiveCall(Gateway& gateway, uint64_t token, GatewaySink& sink)
      : gateway_(gateway), token(token), sink(sink) {}
  void on_end(ports::CallId, ports::EngineEnd end) override {
    gateway_.on_end(*this, std::move(end));
  }

  // What the access log needs even when the request never reached an engine.
  [[nodiscard]] const RequestContext& context() const {
    return request ? request->context : refused_context;
  }

 private:
  Gateway& gateway_;

 public:
  const uint64_t token;
  GatewaySink& sink;
  std::shared_ptr<const InferRequest> request;  // null until it was admitted
  RequestContext refused_context;               // of a request that was not
  std::string model_name;
  ModelPtr model;  // null until found
  ports::CallId engine_call;
  Instant queue_deadline = Instant::never();
  ports::TimerId timer = 0;
  bool reserved = false;
};

namespace {

// Empty when the model counts as ready for the server.
std::string why_not_ready(const ports::ModelEntry& entry) {
  if (!entry.reason.empty()) return "failed: " + entry.reason;
  for (const auto& [number, version] : entry.versions) {
    if (version->state == ModelState::kFailed) return "failed: " + version->reason;
  }
  return entry.has_been_ready ? "" : "is loading";
}

}  // namespace

Refusal not_ready(const ports::ModelVersion& version) {
  const std::string state(model_state_name(version.state));
  return {EndReason::kNotReady,
          "model \"" + version.model + "\" version " + std::to_string(version.version) +
              " is not ready: " + state + (version.reason.empty() ? "" : ": " + version.reason),
          version.state == ModelState::kFailed ? Duration() : Duration::s(1)};
}

Gateway::Gateway(const GatewayPorts& ports, const GatewayOptions& options)
    : ports_(ports), options_(options) {
  // Read before the snapshot: a publication in between is picked up by the next call.
  directory_generation_ = ports_.models.generation();
  directory_ = ports_.models.snapshot();
}

Gateway::~Gateway() {
  BATON_CHECK(calls_.empty());
}

const ports::Directory& Gateway::directory() {
  const uint64_t generation = ports_.models.generation();
  if (generation != directory_generation_) {
    // Read before the snapshot: a publication in between is picked up by the next call.
    directory_generation_ = generation;
    directory_ = ports_.models.snapshot();
  }
  return *directory_;
}

Result<Gateway::ModelPtr, Refusal> Gateway::find_model(const std::string& name,
                                                       std::optional<int64_t> version) {
  const ports::Directory& current = directory();
  if (!current.complete) {
    return fail(
        Refusal{EndReason::kNotReady, "the server is looking for its models", Duration::s(1)});
  }
  const auto entry = current.models.find(name);
  if (entry == current.models.end()) {
    return fail(Refusal{EndReason::kNotFound, "unknown model \"" + name + "\"", {}});
  }
  const auto& versions = entry->second->versions;
  if (version) {
    const auto found = versions.find(*version);
    if (found == versions.end()) {
      return fail(Refusal{EndReason::kNotFound,
                          "model \"" + name + "\" has no version " + std::to_string(*version),
                          {}});
    }
    return found->second;
  }
  // The highest version that is ready; when none is, the highest, which says why.
  for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
    if (it->second->state == ModelState::kReady) return it->second;
  }
  if (!versions.empty()) return versions.rbegin()->second;
  return fail(
      Refusal{EndReason::kNotReady, "model \"" + name + "\" has no version that is ready", {}});
}

GatewayToken Gateway::infer(InferRequest request, GatewaySink& sink) {
  const uint64_t token = next_token_++;
  auto owned = std::make_unique<LiveCall>(*this, token, sink);
  LiveCall& call = *owned;
  calls_.emplace(token, std::move(owned));
  request.context.id = RequestId((uint64_t{options_.worker} << 48) | token);
  call.model_name = request.model;
  auto started = start(call, request);
  if (!started.has_value()) {
    call.refused_context = std::move(request.context);
    // Answers never come from within infer(): the caller has not yet stored the token.
    ports_.executor.post([this, token, refusal = std::move(started).error()]() mutable {
      refuse(*calls_.at(token), std::move(refusal), {});
    });
  }
  return GatewayToken(token);
}

Result<void, Refusal> Gateway::start(LiveCall& call, InferRequest& request) {
  BATON_ASSIGN(call.model, find_model(request.model, request.version));
  const ports::ModelVersion& model = *call.model;
  ports_.telemetry.cells(options_.worker, model.metrics_slot).started.add();
  if (model.state != ModelState::kReady) return fail(not_ready(model));
  BATON_TRY(fit_to_model(request, model.config));
  RequestContext& context = request.context;
  if (context.priority > std::max(model.config.batching.priority_levels, 1U)) {
    return fail(Refusal{EndReason::kInvalid,
                        "priority " + std::to_string(context.priority) + " is beyond the " +
                            std::to_string(model.config.batching.priority_levels) +
                            " levels of model \"" + model.model + "\"",
                        {}});
  }
  const Instant now = ports_.clock.now();
  context.predicted_cost = model.curve.predict(request.items);
  context.deadline = std::min(context.deadline, context.arrival + options_.max_timeout);
  if (auto refusal = refuse_entry(request, now)) return fail(std::move(*refusal));
  reserved_.in_flight += 1;
  reserved_.bytes += context.bytes;
  call.reserved = true;
  call.request = std::make_shared<const InferRequest>(std::move(request));
  const ports::StartedCall started = model.engine->start({call.request, &ports_.executor}, call);
  call.engine_call = started.id;
  call.queue_deadline = started.queue_deadline;
  arm(call);
  return {};
}

// A request that enters is recorded where it queues; one that does not, here.
std::optional<Refusal> Gateway::refuse_entry(const InferRequest& request, Instant now) {
  const RequestContext& context = request.context;
  auto refused =
      policy::refuse_admission(reserved_, options_.limits, {context.bytes, context.deadline}, now);
  if (!refused) return std::nullopt;
  if (ports_.decisions != nullptr) {
    const uint64_t number = next_decision_++;
    ports_.decisions->input({.entry = number,
                             .now = now,
                             .kind = InputKind::kAdmission,
                             .request = context.id,
                             .items = request.items,
                             .bytes = context.bytes,
                             .deadline = context.deadline,
                             .in_flight = reserved_.in_flight,
                             .in_flight_bytes = reserved_.bytes});
    ports_.decisions->record({.sequence = number,
                              .entry = number,
                              .now = now,
                              .kind = DecisionKind::kRefuse,
                              .reason = refused->limit,
                              .request = context.id,
                              .items = request.items,
                              .queued = reserved_.in_flight,
                              .detail = reserved_.bytes});
  }
  return std::move(refused->refusal);
}

void Gateway::arm(LiveCall& call) {
  const Instant when = std::min(call.queue_deadline, call.request->context.deadline);
  if (when.is_never()) return;
  call.timer = ports_.timers.arm(when, [this, token = call.token] { on_timer(token); });
}

void Gateway::on_timer(uint64_t token) {
  LiveCall& call = *calls_.at(token);
  call.timer = 0;
  const Instant now = ports_.clock.now();
  ports::EnginePort& engine = *call.model->engine;
  if (now >= call.request->context.deadline) {
    // Whichever it is: an abort that reaches nothing has no effect.
    engine.abort(call.engine_call, EndReason::kDeadlineQueued, ports::AbortScope::kOnlyQueued);
    engine.abort(call.engine_call, EndReason::kDeadlineRunning, ports::AbortScope::kAlsoRunning);
    return;
  }
  if (now >= call.queue_deadline) {
    engine.abort(call.engine_call, EndReason::kDeadlineQueued, ports::AbortScope::kOnlyQueued);
    call.queue_deadline = Instant::never();  // what runs is bound by its own deadline alone
  }
  arm(call);
}

void Gateway::cancel(GatewayToken token) {
  const auto found = calls_.find(token.value());
  if (found == calls_.end()) return;
  LiveCall& call = *found->second;
  if (!call.request) return;  // refused; its answer is on the way
  call.model->engine->abort(call.engine_call, EndReason::kClientGone,
                            ports::AbortScope::kAlsoRunning);
}

void Gateway::on_end(LiveCall& call, ports::EngineEnd end) {
  if (end.reason != EndReason::kOk) {
    refuse(call, std::move(end.refusal), end.timings);
    return;
  }
  reshape_outputs(end.result, call.model->config);
  const ports::ModelVersion& served = *call.model;
  if (auto refusal = call.sink.render(*call.request, end.result, served)) {
    refuse(call, std::move(*refusal), end.timings);
    return;
  }
  GatewayAnswer answer;
  answer.request = call.request;
  answer.result = std::move(end.result);
  settle(call, EndReason::kOk, std::move(answer), end.timings);
}

void Gateway::refuse(LiveCall& call, Refusal refusal, const ports::CallTimings& timings) {
  const EndReason reason = refusal.reason;
  GatewayAnswer answer;
  answer.request = call.request;
  answer.refusal = std::move(refusal);
  settle(call, reason, std::move(answer), timings);
}

void Gateway::settle(LiveCall& call, EndReason reason, GatewayAnswer answer,
                     const ports::CallTimings& timings) {
  if (call.timer != 0) ports_.timers.cancel(call.timer);
  const RequestContext& context = call.context();
  if (call.reserved) {
    reserved_.in_flight -= 1;
    reserved_.bytes -= context.bytes;
  }
  const Instant now = ports_.clock.now();
  const uint64_t items = call.request ? call.request->items : 0;
  if (call.model) {
    ModelCells& cells = ports_.telemetry.cells(options_.worker, call.model->metrics_slot);
    cells.ended[static_cast<size_t>(reason)].add();
    if (reason == EndReason::kOk) {
      cells.items_done.add(items);
      cells.total.record(now - context.arrival);
      cells.queue.record(timings.started - timings.queued);
      cells.compute.record(timings.computed_to - timings.computed_from);
      cells.compute_input_ns.add(
          static_cast<uint64_t>((timings.computed_from - timings.started).ns()));
      cells.compute_output_ns.add(
          static_cast<uint64_t>((timings.ended - timings.computed_to).ns()));
    }
    answer.version = call.model->version;
  } else {
    ports_.telemetry.cells(options_.worker).refused[static_cast<size_t>(reason)].add();
  }
  ports_.access_log.write(
      {.context = &context,
       .model = call.model_name,
       .version = answer.version,
       .items = items,
       .reason = reason,
       .message = answer.refusal ? std::string_view(answer.refusal->message) : std::string_view(),
       .timings = timings,
       .ended = now});
  answer.model = std::move(call.model_name);
  GatewaySink& sink = call.sink;
  calls_.erase(call.token);
  sink.on_answer(std::move(answer));
}

void Gateway::record_refused(const RequestContext& context, std::string_view model,
                             const Refusal& refusal) {
  ports_.telemetry.cells(options_.worker).refused[static_cast<size_t>(refusal.reason)].add();
  ports_.access_log.write({.context = &context,
                           .model = model,
                           .reason = refusal.reason,
                           .message = refusal.message,
                           .timings = {},
                           .ended = ports_.clock.now()});
}

ServerReadiness server_readiness(const ports::Directory& current) {
  if (!current.accepting) return {false, "the server is shutting down"};
  if (!current.complete) return {false, "the server is looking for its models"};
  std::string reason;
  for (const auto& [name, entry] : current.models) {
    const std::string missing = entry->required ? why_not_ready(*entry) : "";
    if (missing.empty()) continue;
    if (!reason.empty()) reason += "; ";
    reason.append("model \"").append(name).append("\" ").append(missing);
  }
  return {reason.empty(), reason};
}

Result<ModelView, Refusal> Gateway::view(const std::string& model, std::optional<int64_t> version) {
  ModelView view;
  BATON_ASSIGN(view.served, find_model(model, version));
  // The same snapshot as find_model saw: nothing else runs on this worker meanwhile.
  const auto entry = directory_->models.find(model);
  for (const auto& [number, served] : entry->second->versions) {
    if (served->state == ModelState::kReady) view.ready_versions.push_back(number);
  }
  return view;
}

}  // namespace baton::service
