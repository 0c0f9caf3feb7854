#include "protocol/trace_context/traceparent.h"

#include <algorithm>
#include <span>

namespace baton::protocol::trace_context {
namespace {

// Lower-case hexadecimal only, as the recommendation demands.
bool read_hex(std::string_view text, std::span<uint8_t> out) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  for (size_t i = 0; i < out.size(); ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return true;
}

void append_hex(std::string& out, std::span<const uint8_t> bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  for (uint8_t byte : bytes) {
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
}

}  // namespace

TraceContext parse_traceparent(std::string_view text) {
  constexpr size_t kLength = 55;  // "vv-" + 32 + "-" + 16 + "-" + 2
  if (text.size() < kLength || text[2] != '-' || text[35] != '-' || text[52] != '-') return {};
  if (text.size() > kLength && (text.starts_with("00") || text[kLength] != '-')) return {};
  TraceContext trace;
  uint8_t version = 0;
  const bool ok = read_hex(text.substr(0), std::span(&version, 1)) && version != 0xff &&
                  read_hex(text.substr(3), trace.trace_id) &&
                  read_hex(text.substr(36), trace.parent_id) &&
                  read_hex(text.substr(53), std::span(&trace.flags, 1));
  const bool zero_parent = std::ranges::all_of(trace.parent_id, [](uint8_t b) { return b == 0; });
  if (!ok || zero_parent) return {};
  return trace;
}

std::string format_traceparent(const TraceContext& trace) {
  std::string out = "00-";
  append_hex(out, trace.trace_id);
  out += '-';
  append_hex(out, trace.parent_id);
  out += '-';
  append_hex(out, std::span(&trace.flags, 1));
  return out;
}

}  // namespace baton::protocol::trace_context
