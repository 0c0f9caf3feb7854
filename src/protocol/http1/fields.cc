#include "protocol/http1/fields.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace baton::protocol::http1 {
namespace {

// The lower-case form of a token character, 0 for what is none.
constexpr std::array<char, 256> make_token_table() {
  std::array<char, 256> table{};
  for (char c = '0'; c <= '9'; ++c) table[static_cast<uint8_t>(c)] = c;
  for (char c = 'a'; c <= 'z'; ++c) {
    table[static_cast<uint8_t>(c)] = c;
    table[static_cast<uint8_t>(c - 'a' + 'A')] = c;
  }
  for (char c : {'!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~'}) {
    table[static_cast<uint8_t>(c)] = c;
  }
  return table;
}
constexpr std::array<char, 256> kTokenLower = make_token_table();

char token_lower(char c) {
  return kTokenLower[static_cast<uint8_t>(c)];
}

bool is_value_char(char c) {
  const auto byte = static_cast<uint8_t>(c);
  return (byte >= 0x20 && byte != 0x7f) || byte == '\t';
}

CodecError bad(std::string message) {
  return CodecError{400, std::move(message)};
}

// One line without its CRLF.
std::optional<CodecError> parse_field(std::span<char> line, std::vector<HeaderView>& fields) {
  size_t name_size = 0;
  while (name_size < line.size() && token_lower(line[name_size]) != 0) {
    line[name_size] = token_lower(line[name_size]);
    ++name_size;
  }
  if (name_size == 0 && !line.empty() && (line[0] == ' ' || line[0] == '\t')) {
    return bad("A header line must not begin with a blank: folded headers are not accepted.");
  }
  if (name_size == 0 || name_size == line.size() || line[name_size] != ':') {
    return bad("A header line must be a name, a colon without a blank before it, and a value.");
  }
  const std::string_view text(line.data(), line.size());
  const std::string_view value = trim_blanks(text.substr(name_size + 1));
  if (!std::all_of(value.begin(), value.end(), is_value_char)) {
    return bad("A header value holds a control character.");
  }
  fields.push_back({text.substr(0, name_size), value});
  return std::nullopt;
}

}  // namespace

bool is_token_char(char c) {
  return token_lower(c) != 0;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

bool equal_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() &&
         std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
         });
}

std::string_view trim_blanks(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<uint64_t> parse_length(std::string_view text) {
  if (text.empty()) return std::nullopt;
  uint64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const auto digit = static_cast<uint64_t>(c - '0');
    if (value > (std::numeric_limits<uint64_t>::max() - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  return value;
}

std::string_view take_list_element(std::string_view& list) {
  const size_t comma = list.find(',');
  const std::string_view element = trim_blanks(list.substr(0, comma));
  list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  return element;
}

std::optional<CodecError> parse_fields(std::span<char> lines, size_t limit,
                                       std::vector<HeaderView>& fields) {
  while (!lines.empty()) {
    const void* feed = std::memchr(lines.data(), '\n', lines.size());
    const size_t end = feed == nullptr
                           ? lines.size()
                           : static_cast<size_t>(static_cast<const char*>(feed) - lines.data());
    if (end == lines.size() || end == 0 || lines[end - 1] != '\r') {
      return bad("Lines must end with CR LF.");
    }
    if (fields.size() == limit) {
      return CodecError{431, "The request has more than " + std::to_string(limit) + " headers."};
    }
    if (auto error = parse_field(lines.first(end - 1), fields)) return error;
    lines = lines.subspan(end + 1);
  }
  return std::nullopt;
}

HeadScanner::Found HeadScanner::scan(std::string_view bytes) {
  while (true) {
    const size_t feed = bytes.find('\n', position_);
    if (feed == std::string_view::npos) {
      position_ = bytes.size();
      return Found::kNothing;
    }
    if (feed == line_start_ || bytes[feed - 1] != '\r') return Found::kBareLineFeed;
    const bool empty = feed - line_start_ == 1;
    position_ = line_start_ = feed + 1;
    if (empty) return Found::kEnd;
    ++lines_;
  }
}

}  // namespace baton::protocol::http1
