#include "protocol/oip/log_settings.h"

#include <array>

#include "base/json_writer.h"

namespace baton::protocol::oip {
namespace {

std::unexpected<Refusal> invalid(std::string message) {
  return fail(Refusal{EndReason::kInvalid, std::move(message), {}});
}

struct Flag {
  std::string_view name;
  bool LogSettings::* which;
};
constexpr std::array<Flag, 3> kFlags = {{{"log_info", &LogSettings::info},
                                         {"log_warning", &LogSettings::warning},
                                         {"log_error", &LogSettings::error}}};

Result<void, Refusal> check_fixed(std::string_view name, const LogValue& value,
                                  std::string_view only) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return invalid("\"" + std::string(name) + "\" is a text");
  if (*text == only) return {};
  return fail(Refusal{
      EndReason::kUnsupported, "\"" + std::string(name) + "\" cannot be changed by clients", {}});
}

// Nothing for other kinds, which fail.
bool read_value(json::JsonValue& value, LogValue& out) {
  switch (value.kind()) {
    case json::JsonKind::kBoolean:
      return value.read_bool(out.emplace<bool>());
    case json::JsonKind::kString:
      return value.read_string(out.emplace<std::string>());
    default:
      return value.read_uint64(out.emplace<uint64_t>());
  }
}

}  // namespace

Result<void, Refusal> set_log_value(std::string_view name, const LogValue& value,
                                    LogSettings& settings) {
  for (const Flag& flag : kFlags) {
    if (flag.name != name) continue;
    const bool* on = std::get_if<bool>(&value);
    if (on == nullptr) return invalid("\"" + std::string(name) + "\" is true or false");
    settings.*flag.which = *on;
    return {};
  }
  if (name == "log_verbose_level") {
    const auto* level = std::get_if<uint64_t>(&value);
    if (level == nullptr || *level > UINT32_MAX) {
      return invalid("\"log_verbose_level\" is an integer from 0 to 4294967295");
    }
    settings.verbose_level = static_cast<uint32_t>(*level);
    return {};
  }
  if (name == "log_file") return check_fixed(name, value, kLogFile);
  if (name == "log_format") return check_fixed(name, value, kLogFormat);
  return invalid("there is no log setting \"" + std::string(name.substr(0, 64)) + "\"");
}

Result<LogSettings, Refusal> parse_log_settings(std::string_view body, json::JsonParser& parser,
                                                const LogSettings& current) {
  LogSettings settings = current;
  Refusal refusal{EndReason::kInvalid, "", {}};
  const auto parsed = parser.parse_copy(body, [&](json::JsonValue& root) {
    return root.each_field([&](std::string_view key, json::JsonValue& value) {
      LogValue read;
      if (!read_value(value, read)) return value.within(key);
      auto set = set_log_value(key, read, settings);
      if (!set.has_value()) refusal = std::move(set).error();
      return set.has_value() || value.fail("not accepted");
    });
  });
  if (parsed.has_value()) return settings;
  if (refusal.message.empty()) {
    refusal.message = "the log settings are not valid: " + parsed.error().message;
  }
  return fail(std::move(refusal));
}

std::string log_settings_json(const LogSettings& settings) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("log_file", kLogFile);
  for (const Flag& flag : kFlags) json.field(flag.name, settings.*flag.which);
  json.field("log_verbose_level", uint64_t{settings.verbose_level});
  json.field("log_format", kLogFormat).end_object();
  return out;
}

}  // namespace baton::protocol::oip
