#include <array>
#include <limits>
#include <optional>
#include <string>

#include "protocol/decision_log/decision_log.h"

namespace baton::protocol::decision_log {
namespace {

using json::JsonValue;

bool unknown(std::string_view key, JsonValue& value) {
  return value.fail("unknown field \"" + std::string(key) + "\"");
}

// Of a log from outside. Counts as in config.pbtxt; times such that sums of them fit.
constexpr uint32_t kMostLevels = 256;
constexpr uint32_t kMostInstances = 256;
constexpr uint32_t kMostBatch = 1U << 16;
constexpr Duration kLongest = Duration::s(86'400);
constexpr Instant kLatest = Instant::from_ns(int64_t{1} << 62);

bool read_uint32(JsonValue& value, uint32_t& out,
                 uint32_t most = std::numeric_limits<uint32_t>::max()) {
  uint64_t number = 0;
  if (!value.read_uint64(number)) return false;
  if (number > most) return value.fail("a number is above " + std::to_string(most));
  out = static_cast<uint32_t>(number);
  return true;
}

bool read_ns(JsonValue& value, Duration& out) {
  int64_t ns = 0;
  if (!value.read_int64(ns)) return false;
  out = Duration::ns(ns);
  return (out >= Duration() && out <= kLongest) || value.fail("a span is not of 0 to a day");
}

bool read_ns(JsonValue& value, Instant& out) {
  int64_t ns = 0;
  if (!value.read_int64(ns)) return false;
  out = Instant::from_ns(ns);
  return (out >= Instant() && out <= kLatest) || value.fail("a time is not of 0 to 2^62 ns");
}

// Reads a word of a closed list.
template <class T>
bool read_word(JsonValue& value, std::optional<T> (*parse)(std::string_view), T& out) {
  std::string text;
  if (!value.read_string(text)) return false;
  const std::optional<T> found = parse(text);
  if (!found) return value.fail("unknown word \"" + text + "\"");
  out = *found;
  return true;
}

bool read_policy_field(std::string_view key, JsonValue& value, QueuePolicy& policy) {
  if (key == "timeout_ns") return read_ns(value, policy.timeout);
  if (key == "max_queue_size") return value.read_uint64(policy.max_queue_size);
  if (key == "delays") {
    bool delays = false;
    const bool ok = value.read_bool(delays);
    if (delays) policy.timeout_action = TimeoutAction::kDelay;
    return ok;
  }
  return unknown(key, value);
}

bool read_level_policies(JsonValue& array, std::map<uint32_t, QueuePolicy>& policies) {
  return array.each_element([&](JsonValue& element) {
    uint32_t level = 0;
    QueuePolicy policy;
    const bool ok = element.each_field([&](std::string_view key, JsonValue& value) {
      return key == "level" ? read_uint32(value, level, kMostLevels)
                            : read_policy_field(key, value, policy);
    });
    policies[level] = policy;
    return ok;
  });
}

bool read_batching(JsonValue& object, BatchingConfig& batching) {
  return object.each_field([&](std::string_view key, JsonValue& value) {
    if (key == "enabled") return value.read_bool(batching.enabled);
    if (key == "max_delay_ns") return read_ns(value, batching.max_delay);
    if (key == "preserve_ordering") return value.read_bool(batching.preserve_ordering);
    if (key == "priority_levels") return read_uint32(value, batching.priority_levels, kMostLevels);
    if (key == "default_level") {
      return read_uint32(value, batching.default_priority_level, kMostLevels);
    }
    if (key == "level_policies") return read_level_policies(value, batching.level_policies);
    if (key == "preferred_sizes") {
      return value.each_element([&](JsonValue& element) {
        return read_uint32(element, batching.preferred_sizes.emplace_back());
      });
    }
    if (key == "default_policy") {
      return value.each_field([&](std::string_view inner, JsonValue& field) {
        return read_policy_field(inner, field, batching.default_policy);
      });
    }
    return unknown(key, value);
  });
}

bool read_curve(JsonValue& array, LatencyCurve& curve) {
  return array.each_element([&](JsonValue& element) {
    CurvePoint& point = curve.points().emplace_back();
    return element.each_field([&](std::string_view key, JsonValue& value) {
      if (key == "batch") return read_uint32(value, point.batch_size);
      if (key == "ns") return read_ns(value, point.duration);
      if (key == "samples") return value.read_uint64(point.samples);
      return unknown(key, value);
    });
  });
}

// What made the log does not bear on what is replayed: a difference will show.
bool skip_version(JsonValue& value) {
  std::string version;
  return value.read_string(version);
}

bool read_dispatcher_setup(JsonValue& object, DispatcherSetup& setup) {
  const bool ok = object.each_field([&](std::string_view key, JsonValue& value) {
    if (key == "baton") return skip_version(value);
    if (key == "max_batch_size") {
      return read_uint32(value, setup.config.max_batch_size, kMostBatch);
    }
    if (key == "instances") {
      return read_uint32(value, setup.config.instance_count, kMostInstances);
    }
    if (key == "batching") return read_batching(value, setup.config.batching);
    if (key == "max_items") return value.read_uint64(setup.limits.max_items);
    if (key == "max_bytes") return value.read_uint64(setup.limits.max_bytes);
    if (key == "curve") return read_curve(value, setup.curve);
    if (key == "patience_ns") return read_ns(value, setup.patience);
    if (key == "ageing_ns") return read_ns(value, setup.ageing);
    if (key == "hand_over_ns") return read_ns(value, setup.hand_over);
    return unknown(key, value);
  });
  const LatencyCurve& curve = setup.curve;
  if (ok && !curve.empty() && !is_curve(curve.points())) return object.fail("no latency curve");
  return ok;
}

bool read_admission_setup(JsonValue& object, AdmissionSetup& setup) {
  return object.each_field([&](std::string_view key, JsonValue& value) {
    if (key == "baton") return skip_version(value);
    if (key == "max_in_flight") return value.read_uint64(setup.max_in_flight);
    if (key == "max_bytes") return value.read_uint64(setup.max_bytes);
    return unknown(key, value);
  });
}

bool read_setup(JsonValue& value, LogLine& line) {
  line.kind = LogLine::Kind::kSetup;
  if (line.of_worker) return read_admission_setup(value, line.setup.emplace<AdmissionSetup>());
  auto& setup = line.setup.emplace<DispatcherSetup>();
  setup.config.name = line.model;
  return read_dispatcher_setup(value, setup);
}

bool read_scope(JsonValue& value, bool& also_running) {
  std::string scope;
  if (!value.read_string(scope)) return false;
  also_running = scope == "running";
  return also_running || scope == "queued" || value.fail("unknown scope \"" + scope + "\"");
}

bool read_input_field(std::string_view key, JsonValue& value, DecisionInput& input) {
  uint64_t request = 0;
  if (key == "t_ns") return read_ns(value, input.now);
  if (key == "items") return value.read_uint64(input.items);
  if (key == "bytes") return value.read_uint64(input.bytes);
  if (key == "deadline_ns") return read_ns(value, input.deadline);
  if (key == "priority") return read_uint32(value, input.priority);
  if (key == "key") return value.read_uint64(input.batch_key);
  if (key == "instance") return read_uint32(value, input.instance);
  if (key == "outcome") return read_word(value, parse_run_outcome, input.outcome);
  if (key == "call") return value.read_uint64(input.call);
  if (key == "end_reason") return read_word(value, parse_end_reason, input.end);
  if (key == "scope") return read_scope(value, input.also_running);
  if (key == "in_flight") return value.read_uint64(input.in_flight);
  if (key == "in_flight_bytes") return value.read_uint64(input.in_flight_bytes);
  if (key != "request") return unknown(key, value);
  const bool ok = value.read_uint64(request);
  input.request = RequestId(request);
  return ok;
}

bool read_entry(JsonValue& value, LogLine& line) {
  const bool ok = value.read_uint64(line.entry);
  line.input.entry = line.entry;
  return ok;
}

bool read_count(JsonValue& value, LogLine& line, LogLine::Kind kind) {
  line.kind = kind;
  return value.read_uint64(line.count);
}

// Fields come in the order that the writer gives them: who, then what.
bool read_field(std::string_view key, JsonValue& value, LogLine& line) {
  if (key == "model") return value.read_string(line.model);
  if (key == "version") return value.read_int64(line.version);
  if (key == "load") return value.read_uint64(line.load);
  if (key == "entry") return read_entry(value, line);
  if (key == "seq") return value.read_uint64(line.sequence);
  if (key == "setup") return read_setup(value, line);
  if (key == "missed") return read_count(value, line, LogLine::Kind::kMissed);
  if (key == "dropped_lines") return read_count(value, line, LogLine::Kind::kDropped);
  if (key == "worker") {
    line.of_worker = true;
    return value.read_uint64(line.worker);
  }
  if (key == "in") {
    line.kind = LogLine::Kind::kInput;
    return read_word(value, parse_input_kind, line.input.kind);
  }
  if (line.kind == LogLine::Kind::kInput) return read_input_field(key, value, line.input);
  return value.skip();  // of a decision, which is compared as it stands
}

}  // namespace

Result<LogLine, std::string> LineParser::parse(std::string_view text) {
  LogLine line;
  const auto parsed = parser_.parse_copy(text, [&](JsonValue& root) {
    return root.each_field(
        [&](std::string_view key, JsonValue& value) { return read_field(key, value, line); });
  });
  if (!parsed.has_value()) return fail(parsed.error().message);
  const bool named = line.of_worker || !line.model.empty();
  if (!named && line.kind != LogLine::Kind::kDropped) {
    return fail(std::string("neither \"model\" nor \"worker\" says whose line it is"));
  }
  if (line.kind == LogLine::Kind::kDecision && line.sequence == 0) {
    return fail(std::string("it is no record of a decision log"));
  }
  return line;
}

}  // namespace baton::protocol::decision_log
