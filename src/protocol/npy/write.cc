#include <algorithm>
#include <array>
#include <cstring>

#include "base/bytes.h"
#include "base/half.h"
#include "protocol/npy/npy.h"

namespace baton::protocol::npy {
namespace {

constexpr size_t kAlignment = 64;  // of the data within the file, as numpy.save has it
constexpr size_t kPreambleBytes = 10;
constexpr uint64_t kMostBytes = 1ULL << 30;

// Indexed by DataType; BF16 and BYTES are written as something else.
constexpr std::array<std::string_view, kDataTypeCount> kDescr = {
    "|b1", "|u1", "<u2", "<u4", "<u8", "|i1", "<i2", "<i4", "<i8", "<f2", "<f4", "<f4", "<f8", ""};

std::string shape_tuple(const Shape& shape) {
  std::string text = "(";
  for (int64_t dim : shape) text += std::to_string(dim) + (shape.size() == 1 ? "," : ", ");
  if (shape.size() > 1) text.resize(text.size() - 2);
  return text + ")";
}

Result<std::string, std::string> start_file(std::string_view descr, const Shape& shape) {
  std::string dict = "{'descr': '" + std::string(descr) +
                     "', 'fortran_order': False, 'shape': " + shape_tuple(shape) + ", }";
  const size_t bytes = kPreambleBytes + dict.size() + 1;
  dict.append((kAlignment - bytes % kAlignment) % kAlignment, ' ');
  dict += '\n';
  if (dict.size() > 0xffff) return fail(std::string("it has too many dimensions for a file"));
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(dict.size() & 0xff);
  file += static_cast<char>(dict.size() >> 8);
  return file + dict;
}

// Takes the next element off the front of valid BYTES data.
std::string_view take_element(std::string_view& data) {
  uint32_t length = 0;
  std::memcpy(&length, data.data(), sizeof length);
  const std::string_view element = data.substr(sizeof length, length);
  data.remove_prefix(sizeof length + length);
  return element;
}

Result<std::string, std::string> write_strings(const Tensor& tensor) {
  size_t width = 1;
  uint64_t count = 0;
  for (std::string_view data = as_chars(tensor.data); !data.empty(); ++count) {
    const std::string_view element = take_element(data);
    if (element.ends_with('\0')) {
      return fail(std::string("an element ends in NUL, which NumPy would drop"));
    }
    width = std::max(width, element.size());
  }
  if (count > kMostBytes / width) return fail(std::string("its file would be above 1 GiB"));
  BATON_ASSIGN(std::string file, start_file("|S" + std::to_string(width), tensor.shape));
  file.reserve(file.size() + count * width);
  for (std::string_view data = as_chars(tensor.data); !data.empty();) {
    const std::string_view element = take_element(data);
    file += element;
    file.append(width - element.size(), '\0');
  }
  return file;
}

}  // namespace

Result<std::string, std::string> write_npy(const Tensor& tensor) {
  if (tensor.type == DataType::kBytes) return write_strings(tensor);
  BATON_ASSIGN(std::string file,
               start_file(kDescr[static_cast<size_t>(tensor.type)], tensor.shape));
  if (tensor.type != DataType::kBf16) return file.append(as_chars(tensor.data));
  for (size_t at = 0; at < tensor.data.size(); at += sizeof(uint16_t)) {
    uint16_t bits = 0;
    std::memcpy(&bits, tensor.data.data() + at, sizeof bits);
    const float value = bf16_to_float(bits);
    std::array<char, sizeof value> bytes{};
    std::memcpy(bytes.data(), &value, sizeof value);
    file.append(bytes.data(), bytes.size());
  }
  return file;
}

}  // namespace baton::protocol::npy
