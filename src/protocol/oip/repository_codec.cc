#include "protocol/oip/repository_codec.h"

#include <array>
#include <charconv>
#include <utility>

namespace baton::protocol::oip {
namespace {

using json::JsonKind;
using json::JsonValue;

constexpr std::string_view kFilePrefix = "file:";

Refusal invalid(std::string message) {
  return {EndReason::kInvalid, std::move(message), {}};
}

constexpr uint8_t kNoDigit = 64;

constexpr std::array<uint8_t, 256> make_digits() {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    digits[static_cast<uint8_t>(kAlphabet[i])] = static_cast<uint8_t>(i);
  }
  return digits;
}
constexpr std::array<uint8_t, 256> kDigits = make_digits();

// Visits the fields of the object `parameters`; other fields of the root are passed over.
template <class Visit>
Result<void, Refusal> read_parameters(std::string_view body, json::JsonParser& parser,
                                      Visit visit) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return {};
  const auto parsed = parser.parse(body, [&](JsonValue& root) {
    if (root.kind() != JsonKind::kObject) return root.fail("expected an object");
    return root.each_field([&](std::string_view key, JsonValue& value) {
      if (key != "parameters") return true;
      return value.each_field(visit) || value.within("\"parameters\"");
    });
  });
  if (parsed.has_value()) return {};
  return fail(invalid("the body is no request of the repository: " + parsed.error().message));
}

bool read_version(JsonValue& value, std::optional<int64_t>& version) {
  std::string text;
  if (value.kind() == JsonKind::kNumber) {
    int64_t number = 0;
    if (!value.read_int64(number)) return false;
    text = std::to_string(number);
  } else if (!value.read_string(text)) {
    return false;
  }
  auto parsed = parse_version_parameter(text);
  if (!parsed.has_value()) return value.fail(parsed.error().message);
  version = *parsed;
  return true;
}

bool read_file(std::string_view name, JsonValue& value, LoadRequestBody& out) {
  std::string text;
  if (!value.read_string(text)) return false;
  auto bytes = decode_base64(text);
  if (!bytes) return value.fail("\"file:" + std::string(name) + "\" is no base64");
  out.files[std::string(name)] = std::move(*bytes);
  return true;
}

bool read_load_parameter(std::string_view key, JsonValue& value, LoadRequestBody& out) {
  if (key == "config") return value.read_string(out.config.emplace());
  if (key == "version") return read_version(value, out.version);
  if (key.starts_with(kFilePrefix)) return read_file(key.substr(kFilePrefix.size()), value, out);
  return value.fail("the parameter \"" + std::string(key) +
                    "\" is not known; config, version and file:<version>/<file> are");
}

bool stays_inside(std::string_view path) {
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == ".." || part == ".") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
  return false;  // it ends with a slash
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  const size_t digits = text.size() - padding;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  for (size_t i = 0; i < digits; ++i) {
    const uint8_t digit = kDigits[static_cast<uint8_t>(text[i])];
    if (digit == kNoDigit) return std::nullopt;
    bits = bits << 6 | digit;
    if (i % 4 != 3) continue;
    for (int shift : {16, 8, 0}) out += static_cast<char>(bits >> shift & 0xff);
    bits = 0;
  }
  // Of the last group: one byte of two digits, two of three; what is left over is zero.
  if (padding == 2) {
    if ((bits & 0xf) != 0) return std::nullopt;
    out += static_cast<char>(bits >> 4);
  } else if (padding == 1) {
    if ((bits & 0x3) != 0) return std::nullopt;
    out += static_cast<char>(bits >> 10);
    out += static_cast<char>(bits >> 2 & 0xff);
  }
  return out;
}

Result<int64_t, Refusal> parse_version_parameter(std::string_view text) {
  int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size() || version < 1) {
    return fail(invalid("the parameter \"version\" is a positive integer"));
  }
  return version;
}

Result<void, Refusal> check_load_parameters(const std::optional<std::string>& config,
                                            const std::map<std::string, std::string>& files) {
  if (!files.empty() && !config) {
    return fail(invalid("\"file:\" parameters come with a \"config\" parameter"));
  }
  for (const auto& [name, content] : files) {
    const size_t slash = name.find('/');
    const std::string_view version = std::string_view(name).substr(0, slash);
    const bool named = slash != std::string::npos &&
                       version.find_first_not_of("0123456789") == std::string_view::npos &&
                       !version.empty() && version.front() != '0';
    if (named && stays_inside(name) && name.find('\0') == std::string::npos) continue;
    return fail(
        invalid("a file is named file:<version>/<file> and lies inside its version's folder"));
  }
  return {};
}

Result<IndexRequest, Refusal> decode_index_request(std::string_view body,
                                                   json::JsonParser& parser) {
  IndexRequest request;
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return request;
  const auto parsed = parser.parse(body, [&](JsonValue& root) {
    if (root.kind() != JsonKind::kObject) return root.fail("expected an object");
    return root.each_field([&](std::string_view key, JsonValue& value) {
      return key != "ready" || value.read_bool(request.ready) || value.within("\"ready\"");
    });
  });
  if (parsed.has_value()) return request;
  return fail(invalid("the body is no request of the index: " + parsed.error().message));
}

Result<LoadRequestBody, Refusal> decode_load_request(std::string_view body,
                                                     json::JsonParser& parser) {
  LoadRequestBody request;
  BATON_TRY(read_parameters(body, parser, [&](std::string_view key, JsonValue& value) {
    return read_load_parameter(key, value, request);
  }));
  BATON_TRY(check_load_parameters(request.config, request.files));
  return request;
}

Result<UnloadRequestBody, Refusal> decode_unload_request(std::string_view body,
                                                         json::JsonParser& parser) {
  UnloadRequestBody request;
  BATON_TRY(read_parameters(body, parser, [&](std::string_view key, JsonValue& value) {
    if (key == "unload_dependents") return value.read_bool(request.dependents);
    if (key == "version") return read_version(value, request.version);
    return value.fail("the parameter \"" + std::string(key) +
                      "\" is not known; unload_dependents and version are");
  }));
  return request;
}

}  // namespace baton::protocol::oip
