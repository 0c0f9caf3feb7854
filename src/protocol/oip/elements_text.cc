#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bytes.h"
#include "base/half.h"
#include "base/json_writer.h"
#include "protocol/oip/client_answer.h"

namespace baton::protocol::oip {
namespace {

constexpr size_t kMostStringBytes = 80;

template <class T>
T element(std::span<const std::byte> data, uint64_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof value, sizeof value);
  return value;
}

template <class T>
std::string floating(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text;
  JsonWriter(text).number(value);
  return text;
}

std::string number_text(const Tensor& tensor, uint64_t index) {
  const auto data = tensor.data;
  switch (tensor.type) {
    case DataType::kBool:
      return element<uint8_t>(data, index) != 0 ? "true" : "false";
    case DataType::kUint8:
      return std::to_string(element<uint8_t>(data, index));
    case DataType::kUint16:
      return std::to_string(element<uint16_t>(data, index));
    case DataType::kUint32:
      return std::to_string(element<uint32_t>(data, index));
    case DataType::kUint64:
      return std::to_string(element<uint64_t>(data, index));
    case DataType::kInt8:
      return std::to_string(element<int8_t>(data, index));
    case DataType::kInt16:
      return std::to_string(element<int16_t>(data, index));
    case DataType::kInt32:
      return std::to_string(element<int32_t>(data, index));
    case DataType::kInt64:
      return std::to_string(element<int64_t>(data, index));
    case DataType::kFp16:
      return floating(fp16_to_float(element<uint16_t>(data, index)));
    case DataType::kBf16:
      return floating(bf16_to_float(element<uint16_t>(data, index)));
    case DataType::kFp32:
      return floating(element<float>(data, index));
    case DataType::kFp64:
      return floating(element<double>(data, index));
    case DataType::kBytes:
      break;
  }
  return "";
}

// Takes the next string off the front.
std::string string_text(std::string_view& data) {
  const auto length = element<uint32_t>(std::as_bytes(std::span(data)), 0);
  const std::string_view whole = data.substr(sizeof length, length);
  data.remove_prefix(sizeof length + length);
  std::string text;
  append_json_string(text, whole.substr(0, kMostStringBytes));
  return whole.size() > kMostStringBytes ? text + "..." : text;
}

}  // namespace

std::string elements_text(const Tensor& tensor, uint64_t most) {
  const uint64_t count = element_count(tensor.shape).value_or(0);
  std::string text;
  std::string_view strings = as_chars(tensor.data);
  for (uint64_t i = 0; i < std::min(count, most); ++i) {
    if (i > 0) text += ", ";
    text += tensor.type == DataType::kBytes ? string_text(strings) : number_text(tensor, i);
  }
  return count > most ? text + ", ..." : text;
}

std::string printable(std::string_view name) {
  if (is_plain_json(name)) return std::string(name);
  std::string text;
  append_json_string(text, name);
  return text;
}

}  // namespace baton::protocol::oip
