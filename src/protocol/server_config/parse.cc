#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "protocol/server_config/keys.h"
#include "protocol/server_config/server_config_codec.h"

namespace baton::protocol::server_config {
namespace {

constexpr size_t kMostBytes = 1 << 20;

int line_of(const YAML::Node& node) {
  return node.Mark().line + 1;
}

// Expands ${NAME} and ${NAME:-fallback}.
Result<std::string, std::string> expand(std::string_view text, const Environment& environment) {
  std::string out;
  while (!text.empty()) {
    const size_t start = text.find("${");
    out.append(text.substr(0, start));
    if (start == std::string_view::npos) break;
    text.remove_prefix(start + 2);
    const size_t end = text.find('}');
    if (end == std::string_view::npos) return fail(std::string("\"${\" is not closed"));
    const std::string_view inside = text.substr(0, end);
    const size_t separator = inside.find(":-");
    const std::string name(inside.substr(0, separator));
    if (auto value = environment(name)) {
      out.append(*value);
    } else if (separator != std::string_view::npos) {
      out.append(inside.substr(separator + 2));
    } else {
      return fail("the environment has no " + name);
    }
    text.remove_prefix(end + 1);
  }
  return out;
}

struct Unit {
  std::string_view name;
  uint64_t factor;
};
constexpr std::array<Unit, 1> kPlain = {{{"", 1}}};
constexpr std::array<Unit, 4> kTimes = {{{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}}};
constexpr std::array<Unit, 5> kSizes = {
    {{"B", 1}, {"KiB", 1ULL << 10}, {"MiB", 1ULL << 20}, {"GiB", 1ULL << 30}, {"TiB", 1ULL << 40}}};

// A whole number and a unit, such as 250ms or 64MiB.
std::optional<uint64_t> read_with_unit(std::string_view text, std::span<const Unit> units) {
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  for (const Unit& unit : units) {
    if (unit.name != text) continue;
    if (count > UINT64_MAX / unit.factor) return std::nullopt;
    return count * unit.factor;
  }
  return std::nullopt;
}

std::optional<uint64_t> read_integer(std::string_view text) {
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return count;
}

// In the largest unit that divides it.
std::string write_with_unit(uint64_t count, std::span<const Unit> units) {
  const Unit* best = units.data();
  for (const Unit& unit : units) {
    if (count != 0 && count % unit.factor == 0) best = &unit;
  }
  return std::to_string(count / best->factor) + std::string(best->name);
}

std::string range_text(const Key& key, std::span<const Unit> units) {
  return " from " + write_with_unit(key.low, units) + " to " + write_with_unit(key.high, units);
}

std::string expected(const Key& key) {
  switch (key.type) {
    case KeyType::kText:
      return "a text";
    case KeyType::kInteger:
      return "an integer" + range_text(key, kPlain);
    case KeyType::kBoolean:
      return "true or false";
    case KeyType::kDuration:
      return "a time such as 250ms or 5s" + range_text(key, kTimes);
    case KeyType::kBytes:
      return "a size such as 64MiB" + range_text(key, kSizes);
    case KeyType::kTextList:
      return "a list of texts";
    case KeyType::kChoice:
      break;
  }
  std::string choices = "one of";
  for (std::string_view choice : key.choices) choices.append(" ").append(choice);
  return choices;
}

std::optional<KeyValue> read_scalar(const Key& key, const std::string& text) {
  const auto in_range = [&](std::optional<uint64_t> value) {
    return value && *value >= key.low && *value <= key.high;
  };
  switch (key.type) {
    case KeyType::kText:
      return KeyValue(text);
    case KeyType::kBoolean:
      if (text != "true" && text != "false") return std::nullopt;
      return KeyValue(text == "true");
    case KeyType::kInteger:
      if (const auto value = read_integer(text); in_range(value)) return KeyValue(*value);
      return std::nullopt;
    case KeyType::kBytes:
      if (const auto value = read_with_unit(text, kSizes); in_range(value)) return KeyValue(*value);
      return std::nullopt;
    case KeyType::kDuration:
      if (const auto value = read_with_unit(text, kTimes); in_range(value)) {
        return KeyValue(Duration::ms(static_cast<int64_t>(*value)));
      }
      return std::nullopt;
    case KeyType::kChoice:
      if (std::ranges::find(key.choices, text) == key.choices.end()) return std::nullopt;
      return KeyValue(text);
    case KeyType::kTextList:
      break;
  }
  return std::nullopt;
}

std::string wrong_value(const Key& key, const std::string& found) {
  std::string message = std::string(key.path) + ": expected " + expected(key);
  if (!found.empty()) message += ", found \"" + found + "\"";
  return message;
}

// Empty: the value is right.
std::string complaint_of(const Key& key, const KeyValue& value) {
  const std::string found = key.check == nullptr ? std::string() : key.check(value);
  return found.empty() ? found : std::string(key.path) + ": " + found;
}

constexpr std::string_view kDefault = "the default";

std::string text_of(const KeyValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return "\"" + *text + "\"";
  if (const auto* number = std::get_if<uint64_t>(&value)) return std::to_string(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* span = std::get_if<Duration>(&value)) return std::to_string(span->us()) + " us";
  std::string text = "[";
  for (const std::string& item : std::get<std::vector<std::string>>(value)) {
    text += (text.size() > 1 ? ", \"" : "\"") + item + "\"";
  }
  return text + "]";
}

void keep(ServerConfig& config, const Key& key, const KeyValue& value) {
  key.set(config, value);
  config.given[std::string(key.path)] = text_of(value);
}

class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  Result<ServerConfig, ConfigError> read(const YAML::Node& root) {
    if (!root.IsMap()) return fail(ConfigError{0, "expected a mapping that begins `version: 1`"});
    const YAML::Node version = root["version"];
    if (!version || !version.IsScalar() || version.Scalar() != "1") {
      return fail(ConfigError{version ? line_of(version) : 0, "version: expected 1"});
    }
    BATON_TRY(walk(root, ""));
    return std::move(config_);
  }

 private:
  Result<void, ConfigError> walk(const YAML::Node& map, const std::string& prefix) {
    std::set<std::string> seen;
    for (const auto& entry : map) {
      if (!entry.first.IsScalar()) return fail(ConfigError{line_of(entry.first), "expected a key"});
      const std::string path = prefix + entry.first.Scalar();
      if (path == "version") continue;
      if (!seen.insert(path).second) {
        return fail(ConfigError{line_of(entry.first), path + " stands twice"});
      }
      BATON_TRY(read_entry(path, entry.first, entry.second));
    }
    return {};
  }

  Result<void, ConfigError> read_entry(const std::string& path, const YAML::Node& name,
                                       const YAML::Node& value) {
    const auto keys = all_keys();
    const auto key = std::ranges::find(keys, path, &Key::path);
    if (key != keys.end()) return set(*key, value);
    const bool is_section = std::ranges::any_of(
        keys, [&](const Key& candidate) { return candidate.path.starts_with(path + "."); });
    if (!is_section) {
      const std::string nearest = nearest_key(path);
      return fail(ConfigError{
          line_of(name),
          "unknown key " + path + (nearest.empty() ? "" : "; the nearest is " + nearest)});
    }
    if (value.IsMap()) return walk(value, path + ".");
    if (value.IsNull()) return {};
    return fail(ConfigError{line_of(value), path + ": expected a mapping"});
  }

  Result<void, ConfigError> set(const Key& key, const YAML::Node& node) {
    if (key.type == KeyType::kTextList) return set_list(key, node);
    if (!node.IsScalar()) return wrong(key, node, "");
    BATON_ASSIGN(const std::string text, scalar(node));
    const auto value = read_scalar(key, text);
    if (!value) return wrong(key, node, text);
    return store(key, node, *value);
  }

  Result<void, ConfigError> store(const Key& key, const YAML::Node& node, const KeyValue& value) {
    if (auto complaint = complaint_of(key, value); !complaint.empty()) {
      return fail(ConfigError{line_of(node), std::move(complaint)});
    }
    keep(config_, key, value);
    return {};
  }

  Result<void, ConfigError> set_list(const Key& key, const YAML::Node& node) {
    if (!node.IsSequence()) return wrong(key, node, "");
    std::vector<std::string> items;
    for (const YAML::Node& item : node) {
      if (!item.IsScalar()) return wrong(key, item, "");
      BATON_ASSIGN(std::string text, scalar(item));
      items.push_back(std::move(text));
    }
    return store(key, node, std::move(items));
  }

  Result<std::string, ConfigError> scalar(const YAML::Node& node) const {
    auto expanded = expand(node.Scalar(), environment_);
    if (!expanded.has_value()) return fail(ConfigError{line_of(node), expanded.error()});
    return std::move(*expanded);
  }

  static Result<void, ConfigError> wrong(const Key& key, const YAML::Node& node,
                                         const std::string& found) {
    return fail(ConfigError{line_of(node), wrong_value(key, found)});
  }

  const Environment& environment_;
  ServerConfig config_;
};

}  // namespace

Result<void, std::string> apply_setting(ServerConfig& config, std::string_view path,
                                        const std::string& text) {
  const auto keys = all_keys();
  const auto key = std::ranges::find(keys, path, &Key::path);
  if (key == keys.end()) return fail("unknown key " + std::string(path));
  const auto value = read_scalar(*key, text);
  if (!value) return fail(wrong_value(*key, text));
  if (auto complaint = complaint_of(*key, *value); !complaint.empty()) return fail(complaint);
  keep(config, *key, *value);
  return {};
}

std::vector<KeyChange> changed_keys(const ServerConfig& before, const ServerConfig& after) {
  std::vector<KeyChange> changes;
  for (const Key& key : all_keys()) {
    const std::string path(key.path);
    const auto text_in = [&](const ServerConfig& config) {
      const auto found = config.given.find(path);
      return found == config.given.end() ? std::string(kDefault) : found->second;
    };
    KeyChange change{path, text_in(before), text_in(after)};
    if (change.before != change.after) changes.push_back(std::move(change));
  }
  return changes;
}

Result<ServerConfig, ConfigError> parse_server_config(std::string_view text,
                                                      const Environment& environment) {
  if (text.size() > kMostBytes) return fail(ConfigError{0, "the file is larger than 1 MiB"});
  try {
    return Reader(environment).read(YAML::Load(std::string(text)));
  } catch (const YAML::Exception& error) {  // yaml-cpp reports by throwing
    return fail(ConfigError{error.mark.line + 1, error.msg});
  }
}

}  // namespace baton::protocol::server_config
