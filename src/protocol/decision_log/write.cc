#include "base/json_writer.h"
#include "domain/version.h"
#include "protocol/decision_log/decision_log.h"

namespace baton::protocol::decision_log {
namespace {

void write_policy(JsonWriter& json, const QueuePolicy& policy) {
  json.field("timeout_ns", policy.timeout.ns());
  json.field("max_queue_size", policy.max_queue_size);
  json.field("delays", policy.timeout_action == TimeoutAction::kDelay);
}

void write_batching(JsonWriter& json, const BatchingConfig& batching) {
  // Every field is named, so that one more does not compile until it is kept; whether a request may
  // override the timeout is decided before it comes here.
  const auto& [enabled, preferred, delay, ordered, levels, level, policy, level_policies] =
      batching;
  json.begin_object().field("enabled", enabled).key("preferred_sizes").begin_array();
  for (uint32_t size : preferred) json.number(uint64_t{size});
  json.end_array().field("max_delay_ns", delay.ns()).field("preserve_ordering", ordered);
  json.field("priority_levels", uint64_t{levels}).field("default_level", uint64_t{level});
  json.key("default_policy").begin_object();
  write_policy(json, policy);
  json.end_object().key("level_policies").begin_array();
  for (const auto& [number, of_level] : level_policies) {
    json.begin_object().field("level", uint64_t{number});
    write_policy(json, of_level);
    json.end_object();
  }
  json.end_array().end_object();
}

void write_curve(JsonWriter& json, const LatencyCurve& curve) {
  json.begin_array();
  for (const CurvePoint& point : curve.points()) {
    json.begin_object().field("batch", uint64_t{point.batch_size});
    json.field("ns", point.duration.ns()).field("samples", point.samples).end_object();
  }
  json.end_array();
}

void write_request(JsonWriter& json, const DecisionInput& input) {
  json.field("request", input.request.value()).field("items", input.items);
  json.field("bytes", input.bytes);
  if (!input.deadline.is_never()) json.field("deadline_ns", input.deadline.ns());
}

void write_facts(JsonWriter& json, const DecisionInput& input) {
  const auto instance = static_cast<uint64_t>(input.instance);
  switch (input.kind) {
    case InputKind::kSubmit:
      write_request(json, input);
      json.field("priority", uint64_t{input.priority}).field("key", input.batch_key);
      break;
    case InputKind::kWillAsk:
    case InputKind::kNext:
    case InputKind::kAddInstance:
    case InputKind::kRemoveInstance:
      json.field("instance", instance);
      break;
    case InputKind::kFinish:
      json.field("instance", instance).field("outcome", run_outcome_name(input.outcome));
      break;
    case InputKind::kAbort:
      json.field("call", input.call).field("end_reason", end_reason_name(input.end));
      json.field("scope", input.also_running ? "running" : "queued");
      break;
    case InputKind::kStopAccepting:
    case InputKind::kClose:
      json.field("end_reason", end_reason_name(input.end));
      break;
    case InputKind::kAdmission:
      write_request(json, input);
      json.field("in_flight", input.in_flight).field("in_flight_bytes", input.in_flight_bytes);
      break;
  }
}

}  // namespace

LineWriter LineWriter::of_model(std::string_view model, int64_t version, uint64_t load) {
  std::string head;
  JsonWriter json(head);
  json.begin_object().field("model", model).field("version", version);
  if (load > 1) json.field("load", load);
  return LineWriter(std::move(head));
}

LineWriter LineWriter::of_worker(uint64_t worker) {
  std::string head;
  JsonWriter(head).begin_object().field("worker", worker);
  return LineWriter(std::move(head));
}

std::string LineWriter::setup(const DispatcherSetup& setup) const {
  std::string line = head_ + ",\"setup\":";
  JsonWriter json(line);
  json.begin_object().field("baton", kBatonVersion);
  json.field("max_batch_size", uint64_t{setup.config.max_batch_size});
  json.field("instances", uint64_t{setup.config.instance_count}).key("batching");
  write_batching(json, setup.config.batching);
  json.field("max_items", setup.limits.max_items).field("max_bytes", setup.limits.max_bytes);
  json.key("curve");
  write_curve(json, setup.curve);
  json.field("patience_ns", setup.patience.ns()).field("ageing_ns", setup.ageing.ns());
  json.field("hand_over_ns", setup.hand_over.ns()).end_object();
  return line + "}";
}

std::string LineWriter::setup(const AdmissionSetup& setup) const {
  std::string line = head_ + ",\"setup\":";
  JsonWriter json(line);
  json.begin_object().field("baton", kBatonVersion);
  json.field("max_in_flight", setup.max_in_flight).field("max_bytes", setup.max_bytes);
  json.end_object();
  return line + "}";
}

std::string LineWriter::input(const DecisionInput& input) const {
  std::string line = head_ + ",\"in\":";
  JsonWriter json(line);
  json.string(input_kind_name(input.kind));
  json.field("entry", input.entry).field("t_ns", input.now.ns());
  write_facts(json, input);
  return line + "}";
}

std::string LineWriter::decision(const Decision& decision) const {
  std::string line = head_ + ",\"seq\":";
  JsonWriter json(line);
  json.number(decision.sequence);
  json.field("entry", decision.entry).field("t_ns", decision.now.ns());
  json.field("kind", decision_kind_name(decision.kind));
  json.field("reason", decision_reason_name(decision.reason));
  json.field("instance", static_cast<uint64_t>(decision.instance));
  json.field("request", decision.request.value()).field("items", decision.items);
  json.field("queued", decision.queued).field("detail", decision.detail);
  return line + "}";
}

std::string LineWriter::missed(uint64_t records) const {
  return head_ + ",\"missed\":" + std::to_string(records) + "}";
}

}  // namespace baton::protocol::decision_log
