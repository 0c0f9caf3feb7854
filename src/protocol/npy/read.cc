#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>

#include "protocol/npy/header.h"
#include "protocol/npy/npy.h"

namespace baton::protocol::npy {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kVersionBytes = 2;

struct NumberType {
  std::string_view descr;  // without its byte order
  DataType type;
};
constexpr std::array<NumberType, 13> kNumberTypes = {{{"b1", DataType::kBool},
                                                      {"u1", DataType::kUint8},
                                                      {"u2", DataType::kUint16},
                                                      {"u4", DataType::kUint32},
                                                      {"u8", DataType::kUint64},
                                                      {"i1", DataType::kInt8},
                                                      {"i2", DataType::kInt16},
                                                      {"i4", DataType::kInt32},
                                                      {"i8", DataType::kInt64},
                                                      {"f2", DataType::kFp16},
                                                      {"V2", DataType::kBf16},
                                                      {"f4", DataType::kFp32},
                                                      {"f8", DataType::kFp64}}};

std::optional<DataType> number_type(std::string_view descr) {
  for (const NumberType& row : kNumberTypes) {
    if (row.descr == descr) return row.type;
  }
  return std::nullopt;
}

uint32_t little_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
  }
  return value;
}

struct Parts {
  std::string_view header;
  std::string_view data;
};

Result<Parts, std::string> split(std::string_view file) {
  if (!file.starts_with(kMagic)) return fail(std::string("it is no .npy file"));
  file.remove_prefix(kMagic.size());
  const auto cut = [] { return fail(std::string("it ends within its .npy header")); };
  if (file.size() < kVersionBytes) return cut();
  const int major = file[0];
  if (major < 1 || major > 3) return fail(std::string("its .npy version is not 1, 2 or 3"));
  file.remove_prefix(kVersionBytes);
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (file.size() < length_bytes) return cut();
  const size_t length = little_endian(file.substr(0, length_bytes));
  file.remove_prefix(length_bytes);
  if (file.size() < length) return cut();
  return Parts{file.substr(0, length), file.substr(length)};
}

void append(std::vector<std::byte>& out, std::string_view bytes) {
  const auto added = std::as_bytes(std::span(bytes));
  out.insert(out.end(), added.begin(), added.end());
}

// A BYTES element: its length, then itself.
void append_element(std::vector<std::byte>& out, std::string_view element) {
  const auto length = static_cast<uint32_t>(element.size());
  std::array<char, sizeof length> bytes{};
  std::memcpy(bytes.data(), &length, sizeof length);
  append(out, {bytes.data(), bytes.size()});
  append(out, element);
}

void append_code_point(std::string& out, uint32_t point) {
  const auto add = [&](uint32_t byte) { out += static_cast<char>(byte); };
  const auto trail = [&](int shift) { add(0x80 | (point >> shift & 0x3f)); };
  if (point < 0x80) return add(point);
  if (point < 0x800) {
    add(0xc0 | point >> 6);
  } else if (point < 0x10000) {
    add(0xe0 | point >> 12);
    trail(6);
  } else {
    add(0xf0 | point >> 18);
    trail(12);
    trail(6);
  }
  trail(0);
}

// Of UTF-32; nothing when a number is no character.
std::optional<std::string> to_utf8(std::string_view characters) {
  std::string text;
  size_t kept = 0;  // up to the last character that is not NUL
  for (; !characters.empty(); characters.remove_prefix(4)) {
    const uint32_t point = little_endian(characters.substr(0, 4));
    if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return std::nullopt;
    append_code_point(text, point);
    if (point != 0) kept = text.size();
  }
  text.resize(kept);
  return text;
}

std::string wrong_size(const Header& header, size_t size) {
  return "it holds " + std::to_string(size) + " bytes of data, which are not the elements of " +
         shape_text(header.shape);
}

// "S5" and "<U5": elements of one width, filled up with NUL.
Result<Array, std::string> read_strings(const Header& header, uint64_t count,
                                        std::string_view data) {
  const bool unicode = header.descr[1] == 'U';
  uint32_t width = 0;
  const char* const last = header.descr.data() + header.descr.size();
  const auto [end, error] = std::from_chars(header.descr.data() + 2, last, width);
  if (error != std::errc() || end != last || width == 0 || width > (1U << 28)) {
    return fail("its strings have no width: " + header.descr);
  }
  if (unicode) width *= 4;
  if (data.size() / width != count || data.size() % width != 0) {
    return fail(wrong_size(header, data.size()));
  }
  Array array{DataType::kBytes, header.shape, {}};
  for (; !data.empty(); data.remove_prefix(width)) {
    const std::string_view element = data.substr(0, width);
    if (!unicode) {
      append_element(array.data, element.substr(0, element.find_last_not_of('\0') + 1));
      continue;
    }
    const auto text = to_utf8(element);
    if (!text) return fail(std::string("it holds a string with a number that is no character"));
    append_element(array.data, *text);
  }
  return array;
}

// Why the elements of this description have no place in a tensor.
std::string unreadable(const std::string& descr) {
  if (descr.ends_with('O')) {
    return "it holds Python objects; save an array of numbers or, for text, of dtype S or U";
  }
  if (descr.starts_with('>')) {
    return "its numbers are big-endian; save them as little-endian: " + descr;
  }
  return "the protocol has no type for its elements: " + descr;
}

}  // namespace

Result<Array, std::string> read_npy(std::string_view file) {
  BATON_ASSIGN(const Parts parts, split(file));
  BATON_ASSIGN(const Header header, parse_header(parts.header));
  if (header.fortran_order) {
    return fail(std::string("it is in Fortran order; save numpy.ascontiguousarray of it"));
  }
  const auto count = element_count(header.shape);
  if (!count) return fail(std::string("its shape is too large"));
  const std::string& descr = header.descr;
  const bool ordered = descr.starts_with('<') || descr.starts_with('|');
  if (descr.size() < 3 || !ordered) return fail(unreadable(descr));
  if (descr[1] == 'S' || descr[1] == 'U') return read_strings(header, *count, parts.data);
  const auto type = number_type(std::string_view(descr).substr(1));
  if (!type) return fail(unreadable(descr));
  if (parts.data.size() != *count * element_size(*type)) {
    return fail(wrong_size(header, parts.data.size()));
  }
  Array array{*type, header.shape, {}};
  append(array.data, parts.data);
  return array;
}

}  // namespace baton::protocol::npy
