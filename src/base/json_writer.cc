#include "base/json_writer.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/utf8.h"

namespace baton {
namespace {

void append_escape(std::string& out, char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  const auto byte = static_cast<uint8_t>(c);
  out += "\\u00";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

// Eight characters at once, as bit tricks on a word: bytes below 0x20, from 0x80 on, quotes and
// backslashes set a bit (hasless and haszero of Anderson's page of bit tricks).
bool are_plain(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHigh = 0x8080808080808080;
  const auto has_zero = [](uint64_t value) { return (value - kOnes) & ~value & kHigh; };
  const uint64_t below = (word - kOnes * 0x20) & ~word & kHigh;
  return (below | (word & kHigh) | has_zero(word ^ kOnes * '"') | has_zero(word ^ kOnes * '\\')) ==
         0;
}

bool is_plain(char c) {
  const auto byte = static_cast<uint8_t>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

template <class T>
void append_number(std::string& out, T value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out.append(buffer, static_cast<size_t>(end - buffer));
}

}  // namespace

bool is_plain_json(std::string_view text) {
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + i, 8);
    if (!are_plain(word)) return false;
  }
  for (; i < text.size(); ++i) {
    if (!is_plain(text[i])) return false;
  }
  return true;
}

void append_json_string(std::string& out, std::string_view text) {
  if (is_plain_json(text)) {
    const size_t at = out.size();
    const size_t end = at + text.size() + 2;
    // libstdc++ 12 may hand the new capacity to the operation instead of the size asked for.
    out.resize_and_overwrite(end, [&](char* data, size_t) {
      data[at] = '"';
      if (!text.empty()) std::memcpy(data + at + 1, text.data(), text.size());
      data[end - 1] = '"';
      return end;
    });
    return;
  }
  out += '"';
  size_t i = 0;
  while (i < text.size()) {
    const size_t start = i;
    while (i < text.size() && is_plain(text[i])) ++i;
    out.append(text.substr(start, i - start));
    if (i == text.size()) break;
    if (static_cast<uint8_t>(text[i]) < 0x80) {
      append_escape(out, text[i++]);
      continue;
    }
    const size_t length = utf8_sequence_length(text.substr(i));
    if (length == 0) {
      out += "\xef\xbf\xbd";
      ++i;
    } else {
      out.append(text.substr(i, length));
      i += length;
    }
  }
  out += '"';
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(out_, name);
  out_ += ':';
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::plain_key(std::string_view name) {
  const size_t at = out_.size();
  const size_t end = at + name.size() + (need_comma_ ? 4 : 3);
  // libstdc++ 12 may hand the new capacity to the operation instead of the size asked for.
  out_.resize_and_overwrite(end, [&](char* data, size_t) {
    char* to = data + at;
    if (need_comma_) *to++ = ',';
    *to++ = '"';
    std::memcpy(to, name.data(), name.size());
    to[name.size()] = '"';
    to[name.size() + 1] = ':';
    return end;
  });
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view text) {
  separate();
  append_json_string(out_, text);
  return *this;
}

JsonWriter& JsonWriter::number(int64_t value) {
  separate();
  append_number(out_, value);
  return *this;
}

JsonWriter& JsonWriter::number(uint64_t value) {
  separate();
  append_number(out_, value);
  return *this;
}

JsonWriter& JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  if (value == 0 && std::signbit(value)) return negative_zero();
  separate();
  append_number(out_, value);
  return *this;
}

JsonWriter& JsonWriter::number(float value) {
  if (!std::isfinite(value)) return null();
  if (value == 0 && std::signbit(value)) return negative_zero();
  separate();
  append_number(out_, value);
  return *this;
}

// "-0" reads back as an integer.
JsonWriter& JsonWriter::negative_zero() {
  return raw("-0.0");
}

JsonWriter& JsonWriter::boolean(bool value) {
  return raw(value ? "true" : "false");
}
JsonWriter& JsonWriter::null() {
  return raw("null");
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_.append(json);
  return *this;
}

}  // namespace baton
