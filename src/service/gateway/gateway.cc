#include "service/gateway/gateway.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "protocol/oip/metadata.h"
#include "service/gateway/classify.h"
#include "service/gateway/fit.h"
#include "service/gateway/live_call.h"
#include "service/telemetry/trace_line.h"

namespace baton::service {

namespace {

// A failed run's message may hold values of the request (ADR 0007), which are in no log.
std::string_view loggable(const std::optional<Refusal>& refusal) {
  return refusal && refusal->reason != EndReason::kEngineFailed ? refusal->message
                                                                : std::string_view();
}

// Empty when the model counts as ready for the server.
std::string why_not_ready(const ports::ModelEntry& entry) {
  if (entry.started) return "";
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
    : ports_(ports), options_(options), copying_(ports.executor, ports.copiers) {
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
    return fail(Refusal{EndReason::kNotFound, "Request for unknown model \"" + name + "\"", {}});
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

Gateway::LiveCall& Gateway::begin(std::string model, GatewaySink& sink) {
  const uint64_t token = next_token_++;
  auto owned = std::make_unique<LiveCall>(*this, token, sink);
  LiveCall& call = *owned;
  calls_.emplace(token, std::move(owned));
  call.model_name = std::move(model);
  return call;
}

GatewayToken Gateway::infer(RequestPtr request, GatewaySink& sink) {
  LiveCall& call = begin(request->model, sink);
  request->context.id = request_id(call.token);
  auto read = read_inputs(call, request);
  if (read.has_value() && *read) return GatewayToken(call.token);
  Result<void, Refusal> started;
  if (read.has_value()) {
    started = start(call, request);
  } else {
    started = fail(std::move(read).error());
  }
  if (!started.has_value()) {
    call.early_context = std::move(request->context);
    // Answers never come from within infer(): the caller has not yet stored the token.
    refuse_soon(call, std::move(started).error());
  }
  return GatewayToken(call.token);
}

Result<GatewayToken, Refusal> Gateway::expect(RequestContext& context, std::string model,
                                              GatewaySink& sink) {
  LiveCall& call = begin(std::move(model), sink);
  context.id = request_id(call.token);
  if (auto reserved = reserve(call, context, 0); !reserved.has_value()) {
    calls_.erase(call.token);
    return fail(std::move(reserved).error());
  }
  call.early_context = context;
  call.decoding = true;
  arm(call);
  return GatewayToken(call.token);
}

void Gateway::decoded(GatewayToken token, Result<RequestPtr, Refusal> request) {
  const auto found = calls_.find(token.value());
  if (found == calls_.end() || !found->second->decoding) return;
  LiveCall& call = *found->second;
  call.decoding = false;
  ports_.timers.cancel(std::exchange(call.timer, 0));
  release(call);
  if (!request.has_value()) return refuse(call, std::move(request).error(), {});
  RequestPtr& complete = *request;
  complete->context.id = request_id(call.token);
  auto read = read_inputs(call, complete);
  if (!read.has_value()) {
    call.early_context = std::move(complete->context);
    return refuse(call, std::move(read).error(), {});
  }
  if (*read) return;
  if (auto started = start(call, complete); !started.has_value()) {
    call.early_context = std::move(complete->context);
    refuse(call, std::move(started).error(), {});
  }
}

Result<void, Refusal> Gateway::start(LiveCall& call, RequestPtr& complete) {
  InferRequest& request = *complete;
  BATON_ASSIGN(call.model, find_model(request.model, request.version));
  const ports::ModelVersion& model = *call.model;
  if (ports_.traces != nullptr && ports_.traces->sample(model.model)) {
    call.traced_from = ports_.clock.now();
  }
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
  context.predicted_cost = model.curve.predict(request.items);
  BATON_TRY(reserve(call, context, request.items));
  call.request = std::move(complete);
  const ports::StartedCall started = model.engine->start({call.request, &ports_.executor}, call);
  call.engine_call = started.id;
  call.queue_deadline = started.queue_deadline;
  arm(call);
  return {};
}

Result<void, Refusal> Gateway::reserve(LiveCall& call, RequestContext& context, uint64_t items) {
  context.deadline = std::min(context.deadline, context.arrival + options_.max_timeout);
  if (auto refusal = refuse_entry(context, items, ports_.clock.now())) {
    return fail(std::move(*refusal));
  }
  reserved_.in_flight += 1;
  reserved_.bytes += context.bytes;
  call.reserved = true;
  return {};
}

// While the context that was reserved for stands.
void Gateway::release(LiveCall& call) {
  if (!call.reserved) return;
  reserved_.in_flight -= 1;
  reserved_.bytes -= call.context().bytes;
  call.reserved = false;
}

// A request that enters is recorded where it queues; one that does not, here.
std::optional<Refusal> Gateway::refuse_entry(const RequestContext& context, uint64_t items,
                                             Instant now) {
  auto refused =
      policy::refuse_admission(reserved_, options_.limits, {context.bytes, context.deadline}, now);
  if (!refused) return std::nullopt;
  if (ports_.decisions != nullptr) {
    const DecisionInput input{.entry = next_decision_++,
                              .now = now,
                              .kind = InputKind::kAdmission,
                              .request = context.id,
                              .items = items,
                              .bytes = context.bytes,
                              .deadline = context.deadline,
                              .in_flight = reserved_.in_flight,
                              .in_flight_bytes = reserved_.bytes};
    ports_.decisions->input(input);
    ports_.decisions->record(policy::refusal_decision(input, refused->limit));
  }
  return std::move(refused->refusal);
}

void Gateway::arm(LiveCall& call) {
  const Instant when = std::min(call.queue_deadline, call.context().deadline);
  if (when.is_never()) return;
  call.timer = ports_.timers.arm(when, [this, token = call.token] { on_timer(token); });
}

void Gateway::on_timer(uint64_t token) {
  LiveCall& call = *calls_.at(token);
  call.timer = 0;
  const Instant now = ports_.clock.now();
  const bool expired = now >= call.context().deadline;
  if (call.decoding && expired) {
    return refuse(call, {EndReason::kDeadlineQueued, "the deadline passed before it ran", {}}, {});
  }
  if (call.rendering && expired) {
    return refuse(
        call, {EndReason::kDeadlineRunning, "the deadline passed while its answer was written", {}},
        call.outcome.timings);
  }
  if (call.decoding || call.rendering) {
    call.queue_deadline = Instant::never();
    return arm(call);
  }
  ports::EnginePort& engine = *call.model->engine;
  if (expired) {
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
  if (call.decoding || call.rendering) {
    // What is still on its way for it finds it ended.
    call.decoding = call.rendering = false;
    ports_.timers.cancel(std::exchange(call.timer, 0));
    return refuse_soon(call, {EndReason::kClientGone, "the client has gone", {}});
  }
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
  if (auto refusal = classify(*call.request, end.result, call.model->config)) {
    return refuse(call, std::move(*refusal), end.timings);
  }
  call.outcome = std::move(end);
  auto later = write_outputs(call);
  if (!later.has_value()) return refuse(call, std::move(later).error(), call.outcome.timings);
  if (!*later) render(call);
}

void Gateway::render(LiveCall& call) {
  Rendering rendering = call.sink.render(call.request, call.outcome.result, *call.model);
  call.rendering = rendering.later;
  if (!rendering.later) finish(call, std::move(rendering.refusal));
}

std::optional<Refusal> Gateway::classify(const InferRequest& request, InferResult& result,
                                         const ModelConfig& config) {
  const uint64_t bytes = classified_bytes(request, result, config);
  if (bytes == 0) return std::nullopt;
  // Held while it is made; what came of it is held as every answer.
  const auto held = hold_answer(bytes);
  if (!held.has_value()) return held.error();
  classify_outputs(request, result, config);
  return std::nullopt;
}

void Gateway::rendered(GatewayToken token, std::optional<Refusal> refusal) {
  const auto found = calls_.find(token.value());
  if (found == calls_.end() || !found->second->rendering) return;
  finish(*found->second, std::move(refusal));
}

void Gateway::finish(LiveCall& call, std::optional<Refusal> refusal) {
  if (refusal) return refuse(call, std::move(*refusal), call.outcome.timings);
  GatewayAnswer answer;
  answer.request = call.request;
  answer.result = std::move(call.outcome.result);
  settle(call, EndReason::kOk, std::move(answer), call.outcome.timings);
}

Result<Storage, Refusal> Gateway::hold_answer(uint64_t bytes) {
  if (ports_.answers == nullptr) return Storage();
  Storage held = ports_.answers->lend(bytes);
  if (held == nullptr) {
    return fail(
        Refusal{EndReason::kOverloaded,
                "the answers that clients have not taken yet are at the server's limit of " +
                    std::to_string(ports_.answers->limit()) + " bytes; this one has " +
                    std::to_string(bytes),
                Duration::s(1)});
  }
  return held;
}

// In the next turn of the loop, unless the request ends before.
void Gateway::refuse_soon(LiveCall& call, Refusal refusal) {
  ports_.executor.post([this, token = call.token, refusal = std::move(refusal)]() mutable {
    const auto found = calls_.find(token);
    if (found != calls_.end()) refuse(*found->second, std::move(refusal), {});
  });
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
  release(call);
  const Instant now = ports_.clock.now();
  const uint64_t items = call.request ? call.request->items : 0;
  if (call.model) {
    ModelCells& cells = ports_.telemetry.cells(options_.worker, call.model->metrics_slot);
    cells.ended[static_cast<size_t>(reason)].add();
    cells.last_arrival.raise(context.arrival.ns());
    if (reason == EndReason::kOk) {
      cells.items_done.add(items);
      cells.total.record(now - context.arrival);
      cells.queue.record(timings.started - timings.queued);
      cells.compute.record(timings.computed_to - timings.computed_from);
      cells.compute_input_ns.add(
          static_cast<uint64_t>((timings.computed_from - timings.started).ns()));
      cells.compute_output_ns.add(
          static_cast<uint64_t>((timings.ended - timings.computed_to).ns()));
    } else {
      cells.failed_ns.add(
          static_cast<uint64_t>(std::max((now - context.arrival).ns(), int64_t{0})));
    }
    answer.version = call.model->version;
  } else {
    ports_.telemetry.cells(options_.worker).refused[static_cast<size_t>(reason)].add();
  }
  ports_.access_log.write({.context = &context,
                           .model = call.model_name,
                           .version = answer.version,
                           .items = items,
                           .sequence = call.request ? &call.request->sequence : nullptr,
                           .reason = reason,
                           .message = loggable(answer.refusal),
                           .timings = timings,
                           .ended = now});
  if (call.traced_from != Instant()) trace(call, reason, timings, now);
  answer.model = std::move(call.model_name);
  GatewaySink& sink = call.sink;
  calls_.erase(call.token);
  sink.on_answer(std::move(answer));
}

void Gateway::trace(const LiveCall& call, EndReason reason, const ports::CallTimings& timings,
                    Instant now) {
  ports_.traces->write(trace_line({.context = call.context(),
                                   .model = call.model_name,
                                   .version = call.model->version,
                                   .reason = reason,
                                   .started = call.traced_from,
                                   .timings = timings,
                                   .ended = now}));
}

std::vector<std::string_view> Gateway::extensions() const {
  return protocol::oip::extensions(ports_.shared_memory != nullptr, ports_.traces != nullptr);
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
