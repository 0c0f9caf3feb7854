#include "base/json_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>

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

bool is_plain(char c) {
  const auto byte = static_cast<uint8_t>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

template <class T>
void append_number(std::string& out, T value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out.append(buffer, end);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  if (std::ranges::all_of(text, is_plain)) {
    const size_t at = out.size();
    const size_t end = at + text.size() + 2;
    // libstdc++ 12 may hand the new capacity to the operation instead of the size asked for.
    out.resize_and_overwrite(end, [&](char* data, size_t) {
      data[at] = '"';
      std::ranges::copy(text, data + at + 1);
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

void JsonWriter::separate() {
  if (need_comma_) out_ += ',';
  need_comma_ = true;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_ += bracket;
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_ += bracket;
  need_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(out_, name);
  out_ += ':';
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
