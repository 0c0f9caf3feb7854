#include "protocol/oip/trace_settings.h"

#include <charconv>

#include "base/json_writer.h"

namespace baton::protocol::oip {
namespace {

constexpr std::string_view kFile = "trace_file";
constexpr std::string_view kLevel = "trace_level";
constexpr std::string_view kRate = "trace_rate";
constexpr std::string_view kCount = "trace_count";
constexpr std::string_view kFrequency = "log_frequency";
constexpr size_t kMostTexts = 8;

std::unexpected<Refusal> invalid(std::string message) {
  return fail(Refusal{EndReason::kInvalid, std::move(message), {}});
}

// Error: `expected`, for what is no number from `low` on.
template <class Number>
Result<void, Refusal> read_number(std::string_view name, const std::vector<std::string>& texts,
                                  Number low, std::optional<Number>& out) {
  Number number{};
  const std::string& text = texts.front();
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (texts.size() != 1 || read.ec != std::errc() || read.ptr != end || number < low) {
    return invalid("\"" + std::string(name) + "\" is one integer, " + std::to_string(low) +
                   " or larger");
  }
  out = number;
  return {};
}

Result<void, Refusal> read_level(const std::vector<std::string>& texts,
                                 std::optional<bool>& timestamps) {
  bool on = false;
  for (const std::string& text : texts) {
    if (text == "TENSORS") {
      return fail(Refusal{EndReason::kUnsupported,
                          "tensors are not traced; trace_level TIMESTAMPS is offered",
                          {}});
    }
    if (text != "TIMESTAMPS" && text != "OFF") {
      return invalid("\"trace_level\" is OFF or TIMESTAMPS, not \"" + text.substr(0, 64) + "\"");
    }
    if (text == "OFF" && texts.size() > 1) return invalid("trace_level OFF stands alone");
    on = text == "TIMESTAMPS";
  }
  timestamps = on;
  return {};
}

bool read_text(json::JsonValue& value, std::string& out) {
  if (value.kind() == json::JsonKind::kString) return value.read_string(out);
  int64_t number = 0;
  if (!value.read_int64(number)) return false;
  out = std::to_string(number);
  return true;
}

// null, one text or number, or a list of them.
bool read_texts(json::JsonValue& value, std::vector<std::string>& out) {
  if (value.kind() == json::JsonKind::kNull) return value.skip();
  if (value.kind() != json::JsonKind::kArray) return read_text(value, out.emplace_back());
  return value.each_element([&](json::JsonValue& element) {
    if (out.size() == kMostTexts) return element.fail("too many values");
    return read_text(element, out.emplace_back());
  });
}

}  // namespace

std::vector<TraceValue> trace_values(const TraceSettings& settings, std::string_view file) {
  return {{kFile, {std::string(file)}},
          {kLevel, {settings.timestamps ? "TIMESTAMPS" : "OFF"}},
          {kRate, {std::to_string(settings.rate)}},
          {kCount, {std::to_string(settings.count)}},
          {kFrequency, {std::to_string(settings.log_frequency)}}};
}

Result<void, Refusal> set_trace_value(std::string_view name, const std::vector<std::string>& texts,
                                      std::string_view file, TraceOverrides& overrides) {
  const bool clear = texts.empty();
  if (name == kLevel) {
    if (!clear) return read_level(texts, overrides.timestamps);
    overrides.timestamps.reset();
  } else if (name == kRate) {
    if (!clear) return read_number<uint64_t>(name, texts, 1, overrides.rate);
    overrides.rate.reset();
  } else if (name == kCount) {
    if (!clear) return read_number<int64_t>(name, texts, -1, overrides.count);
    overrides.count.reset();
  } else if (name == kFrequency) {
    if (!clear) return read_number<uint64_t>(name, texts, 0, overrides.log_frequency);
    overrides.log_frequency.reset();
  } else if (name == kFile) {
    if (clear || (texts.size() == 1 && texts.front() == file)) return {};
    return fail(Refusal{EndReason::kUnsupported,
                        "\"trace_file\" cannot be changed by clients; the server's is trace.file",
                        {}});
  } else {
    return invalid("there is no trace setting \"" + std::string(name.substr(0, 64)) + "\"");
  }
  return {};
}

Result<void, Refusal> check_trace_overrides(std::string_view model,
                                            const TraceOverrides& overrides) {
  if (model.empty() || !overrides.log_frequency) return {};
  return fail(Refusal{EndReason::kUnsupported,
                      "log_frequency holds for the file of all models; set it without a model",
                      {}});
}

Refusal traces_not_offered() {
  return {EndReason::kUnsupported,
          "the trace extension is not offered: the server's configuration has no trace.file",
          {}};
}

Result<TraceOverrides, Refusal> parse_trace_settings(std::string_view body,
                                                     json::JsonParser& parser,
                                                     std::string_view file,
                                                     const TraceOverrides& current) {
  TraceOverrides overrides = current;
  Refusal refusal{EndReason::kInvalid, "", {}};
  const auto parsed = parser.parse_copy(body, [&](json::JsonValue& root) {
    return root.each_field([&](std::string_view key, json::JsonValue& value) {
      std::vector<std::string> texts;
      if (!read_texts(value, texts)) return value.within(key);
      auto set = set_trace_value(key, texts, file, overrides);
      if (!set.has_value()) refusal = std::move(set).error();
      return set.has_value() || value.fail("not accepted");
    });
  });
  if (parsed.has_value()) return overrides;
  if (refusal.message.empty()) {
    refusal.message = "the trace settings are not valid: " + parsed.error().message;
  }
  return fail(std::move(refusal));
}

std::string trace_settings_json(const TraceSettings& settings, std::string_view file) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  for (const TraceValue& value : trace_values(settings, file)) {
    if (value.name != kLevel) {
      json.field(value.name, value.texts.front());
      continue;
    }
    json.key(value.name).begin_array();
    for (const std::string& text : value.texts) json.string(text);
    json.end_array();
  }
  json.end_object();
  return out;
}

}  // namespace baton::protocol::oip
