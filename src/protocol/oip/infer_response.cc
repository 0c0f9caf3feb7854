#include <array>
#include <charconv>
#include <concepts>
#include <cstring>

#include "base/bytes.h"
#include "base/half.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "protocol/oip/infer_codec.h"

namespace baton::protocol::oip {
namespace {

constexpr size_t kTypicalBytes = 512;  // of the JSON when tensors are binary

template <class T>
T element(std::span<const std::byte> data, size_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <class T, class Written>
void write_numbers(JsonWriter& json, std::span<const std::byte> data) {
  for (size_t i = 0; i < data.size() / sizeof(T); ++i) {
    json.number(static_cast<Written>(element<T>(data, i)));
  }
}

bool write_strings(JsonWriter& json, std::span<const std::byte> data) {
  size_t offset = 0;
  while (offset < data.size()) {
    uint32_t length = 0;
    std::memcpy(&length, data.data() + offset, sizeof length);
    offset += sizeof length;
    const std::string_view text = as_chars(data.subspan(offset, length));
    if (!is_valid_utf8(text)) return false;
    json.string(text);
    offset += length;
  }
  return true;
}

// False when the tensor cannot be written as JSON.
bool write_elements(JsonWriter& json, const Tensor& tensor) {
  const auto data = tensor.data;
  switch (tensor.type) {
    case DataType::kBool:
      for (std::byte flag : data) json.boolean(flag != std::byte{0});
      break;
    case DataType::kUint8:
      write_numbers<uint8_t, uint64_t>(json, data);
      break;
    case DataType::kUint16:
      write_numbers<uint16_t, uint64_t>(json, data);
      break;
    case DataType::kUint32:
      write_numbers<uint32_t, uint64_t>(json, data);
      break;
    case DataType::kUint64:
      write_numbers<uint64_t, uint64_t>(json, data);
      break;
    case DataType::kInt8:
      write_numbers<int8_t, int64_t>(json, data);
      break;
    case DataType::kInt16:
      write_numbers<int16_t, int64_t>(json, data);
      break;
    case DataType::kInt32:
      write_numbers<int32_t, int64_t>(json, data);
      break;
    case DataType::kInt64:
      write_numbers<int64_t, int64_t>(json, data);
      break;
    case DataType::kFp32:
      write_numbers<float, float>(json, data);
      break;
    case DataType::kFp64:
      write_numbers<double, double>(json, data);
      break;
    case DataType::kFp16:
      for (size_t i = 0; i < data.size() / 2; ++i) {
        json.number(fp16_to_float(element<uint16_t>(data, i)));
      }
      break;
    case DataType::kBf16:
      for (size_t i = 0; i < data.size() / 2; ++i) {
        json.number(bf16_to_float(element<uint16_t>(data, i)));
      }
      break;
    case DataType::kBytes:
      return write_strings(json, data);
  }
  return true;
}

bool wants_binary(const InferRequest& request, std::string_view output) {
  for (const RequestedOutput& wanted : request.outputs) {
    if (wanted.name == output) return wanted.binary;
  }
  return request.binary_outputs_by_default;
}

// The entry of an output whose data stands behind the JSON, written without a writer: most answers
// are little else.
class ShortEntry {
 public:
  static constexpr size_t kMostName = 128;
  static constexpr size_t kMostDims = 8;

  [[nodiscard]] static bool fits(const Tensor& output) {
    return output.name.size() <= kMostName && output.shape.size() <= kMostDims &&
           is_plain_json(output.name);
  }
  std::string_view write(const Tensor& output) {
    at_ = text_.data();
    add(R"({"name":")");
    add(output.name);
    add(R"(","datatype":")");
    add(data_type_name(output.type));
    add(R"(","shape":[)");
    for (size_t i = 0; i < output.shape.size(); ++i) {
      if (i > 0) add(",");
      add(output.shape[i]);
    }
    add(R"(],"parameters":{"binary_data_size":)");
    add(output.data.size());
    add("}}");
    return {text_.data(), at_};
  }

 private:
  static constexpr size_t kMostDigits = 20;
  static constexpr size_t kMostKeys = 128;  // with what surrounds them, and the data type

  void add(std::string_view text) {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  template <std::integral T>
  void add(T number) {
    at_ = std::to_chars(at_, text_.data() + text_.size(), number).ptr;
  }

  std::array<char, kMostName + (kMostDims + 1) * (kMostDigits + 1) + kMostKeys> text_;
  char* at_ = nullptr;
};

}  // namespace

uint64_t json_tensor_bytes(const InferRequest& request, const InferResult& result) {
  uint64_t bytes = 0;
  for (const Tensor& output : result.outputs) {
    if (!wants_binary(request, output.name)) bytes += output.data.size();
  }
  return bytes;
}

Result<EncodedResponse, Refusal> encode_infer_response(const InferRequest& request,
                                                       const InferResult& result,
                                                       ResponseNames names) {
  EncodedResponse encoded;
  encoded.json.reserve(kTypicalBytes);
  encoded.binary.reserve(result.outputs.size());
  JsonWriter json(encoded.json);
  json.begin_object();
  if (!request.context.client_id.empty()) json.field("id", request.context.client_id);
  json.field("model_name", names.model);
  json.field("model_version", std::to_string(names.version));
  json.key("outputs").begin_array();
  ShortEntry entry;
  for (const Tensor& output : result.outputs) {
    if (!output.place && wants_binary(request, output.name) && ShortEntry::fits(output)) {
      json.raw(entry.write(output));
      encoded.binary.push_back(output.data);
      continue;
    }
    json.begin_object().field("name", output.name);
    json.field("datatype", data_type_name(output.type)).key("shape").begin_array();
    for (int64_t dim : output.shape) json.number(dim);
    json.end_array();
    if (output.place) {
      json.key("parameters").begin_object();
      json.field("shared_memory_region", output.place->region);
      json.field("shared_memory_byte_size", output.place->bytes);
      if (output.place->offset != 0) json.field("shared_memory_offset", output.place->offset);
      json.end_object();
    } else if (wants_binary(request, output.name)) {
      json.key("parameters").begin_object();
      json.field("binary_data_size", output.data.size()).end_object();
      encoded.binary.push_back(output.data);
    } else {
      json.key("data").begin_array();
      if (!write_elements(json, output)) {
        return fail(Refusal{EndReason::kInvalid,
                            "output \"" + output.name +
                                "\" holds bytes that are not UTF-8: ask for it as binary data",
                            {}});
      }
      json.end_array();
    }
    json.end_object();
  }
  json.end_array().end_object();
  return encoded;
}

}  // namespace baton::protocol::oip
