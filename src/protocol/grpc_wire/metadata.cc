#include "protocol/grpc_wire/metadata.h"

#include <charconv>

namespace baton::protocol::grpc_wire {

void Metadata::add(std::string_view name, std::string_view value) {
  text_ += name;
  Field field{static_cast<uint32_t>(text_.size()), 0};
  text_ += value;
  field.end = static_cast<uint32_t>(text_.size());
  fields_.push_back(field);
}

std::string_view Metadata::name_of(size_t i) const {
  const size_t start = i == 0 ? 0 : fields_[i - 1].end;
  return std::string_view(text_).substr(start, fields_[i].name_end - start);
}

std::string_view Metadata::value_of(size_t i) const {
  const Field& field = fields_[i];
  return std::string_view(text_).substr(field.name_end, field.end - field.name_end);
}

size_t Metadata::count(std::string_view name) const {
  size_t found = 0;
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (name_of(i) == name) ++found;
  }
  return found;
}

std::optional<std::string_view> Metadata::find(std::string_view name) const {
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (name_of(i) == name) return value_of(i);
  }
  return std::nullopt;
}

Result<Duration, std::string> parse_timeout(std::string_view text) {
  constexpr size_t kMostDigits = 8;
  constexpr std::string_view kWrong = "grpc-timeout is not up to 8 digits and one of H M S m u n";
  if (text.size() < 2 || text.size() > kMostDigits + 1) return fail(std::string(kWrong));
  int64_t amount = 0;
  const char* end = text.data() + text.size() - 1;
  const auto read = std::from_chars(text.data(), end, amount);
  if (read.ec != std::errc() || read.ptr != end || amount < 0) return fail(std::string(kWrong));
  // The largest, 99,999,999 hours, is beyond nanoseconds in 64 bits: ten years stand for ever.
  constexpr int64_t kLongestS = 10LL * 365 * 24 * 3600;
  const auto seconds = [&](int64_t unit) {
    return Duration::s(amount > kLongestS / unit ? kLongestS : amount * unit);
  };
  switch (text.back()) {
    case 'H':
      return seconds(3600);
    case 'M':
      return seconds(60);
    case 'S':
      return seconds(1);
    case 'm':
      return Duration::ms(amount);
    case 'u':
      return Duration::us(amount);
    case 'n':
      return Duration::ns(amount);
    default:
      return fail(std::string(kWrong));
  }
}

std::string encode_message(std::string_view message) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(message.size());
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte <= 0x7e && c != '%') {
      out += c;
      continue;
    }
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

}  // namespace baton::protocol::grpc_wire
