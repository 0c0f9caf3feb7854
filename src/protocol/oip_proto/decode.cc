#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstring>
#include <limits>

#include "baton_inference.pb.h"
#include "protocol/oip_proto/infer_message.h"

namespace baton::protocol::oip_proto {
namespace {

using inference::InferParameter;
using inference::InferTensorContents;
using InputMessage = inference::ModelInferRequest::InferInputTensor;
using Bytes = std::vector<std::byte>;

constexpr int kMostTensors = 1024;
constexpr int kMostDims = 64;

std::unexpected<Refusal> invalid(std::string message) {
  return fail(Refusal{EndReason::kInvalid, std::move(message), {}});
}

std::string quoted(std::string_view name) {
  return "\"" + std::string(name) + "\"";
}

using Done = Result<void, Refusal>;

// A count in either integer form.
Result<uint64_t, Refusal> count_of(const std::string& key, const InferParameter& parameter) {
  if (parameter.has_int64_param() && parameter.int64_param() >= 0) {
    return static_cast<uint64_t>(parameter.int64_param());
  }
  if (parameter.has_uint64_param()) return parameter.uint64_param();
  return invalid("the parameter " + quoted(key) + " is a non-negative integer");
}

Result<CorrelationId, Refusal> correlation_id_of(const std::string& key,
                                                 const InferParameter& parameter) {
  CorrelationId id;
  if (parameter.has_string_param()) {
    id.text = parameter.string_param();
    if (id.text.size() > kMostCorrelationBytes) return invalid(std::string(kLongCorrelationId));
    return id;
  }
  // Clients put an id of 64 bits into the signed field too.
  if (parameter.has_int64_param()) {
    id.number = static_cast<uint64_t>(parameter.int64_param());
    return id;
  }
  if (!parameter.has_uint64_param()) {
    return invalid("the parameter " + quoted(key) + " is an integer or a text");
  }
  id.number = parameter.uint64_param();
  return id;
}

Result<bool, Refusal> flag_of(const std::string& key, const InferParameter& parameter) {
  if (parameter.has_bool_param()) return parameter.bool_param();
  return invalid("the parameter " + quoted(key) + " is a boolean");
}

Done read_parameter(const std::string& key, const InferParameter& parameter, DecodedMessage& out) {
  switch (request_parameter(key)) {
    case RequestParameter::kTimeout: {
      BATON_ASSIGN(out.parameters.timeout_us, count_of(key, parameter));
      return {};
    }
    case RequestParameter::kPriority: {
      BATON_ASSIGN(out.parameters.priority, count_of(key, parameter));
      return {};
    }
    case RequestParameter::kSequenceId: {
      BATON_ASSIGN(out.request.sequence.id, correlation_id_of(key, parameter));
      return {};
    }
    case RequestParameter::kSequenceStart: {
      BATON_ASSIGN(out.request.sequence.start, flag_of(key, parameter));
      return {};
    }
    case RequestParameter::kSequenceEnd: {
      BATON_ASSIGN(out.request.sequence.end, flag_of(key, parameter));
      return {};
    }
    case RequestParameter::kReserved:
      return invalid("the parameter " + quoted(key) + " is reserved");
    case RequestParameter::kOnlyStream:
    case RequestParameter::kUnknown:
      break;
  }
  return {};
}

// Null: the tensor is not in shared memory.
Result<std::shared_ptr<const MemoryPlace>, Refusal> place_of(
    const std::string& label,
    const google::protobuf::Map<std::string, InferParameter>& parameters) {
  MemoryPlace place;
  bool given = false;
  bool sized = false;
  for (const auto& [key, value] : parameters) {
    if (!key.starts_with("shared_memory_")) continue;
    given = true;
    if (key == "shared_memory_region") {
      place.region = value.string_param();
      if (place.region.size() > kMostNameBytes) return invalid("a name is longer than 1024 bytes");
    } else if (key == "shared_memory_byte_size") {
      BATON_ASSIGN(place.bytes, count_of(key, value));
      sized = true;
    } else if (key == "shared_memory_offset") {
      BATON_ASSIGN(place.offset, count_of(key, value));
    }
  }
  if (!given) return nullptr;
  if (!sized || place.region.empty()) {
    return invalid(
        label + ": shared memory needs \"shared_memory_region\" and \"shared_memory_byte_size\"");
  }
  return std::make_shared<const MemoryPlace>(std::move(place));
}

template <class T>
std::span<const std::byte> view_of(const google::protobuf::RepeatedField<T>& field) {
  return std::as_bytes(std::span(field.data(), static_cast<size_t>(field.size())));
}

// Which field of the contents carries a data type, and how many values it holds.
struct TypedField {
  int number = 0;  // in InferTensorContents
  std::string_view name;
};

TypedField typed_field(DataType type) {
  switch (type) {
    case DataType::kBool:
      return {1, "bool_contents"};
    case DataType::kInt8:
    case DataType::kInt16:
    case DataType::kInt32:
      return {2, "int_contents"};
    case DataType::kInt64:
      return {3, "int64_contents"};
    case DataType::kUint8:
    case DataType::kUint16:
    case DataType::kUint32:
      return {4, "uint_contents"};
    case DataType::kUint64:
      return {5, "uint64_contents"};
    case DataType::kFp32:
      return {6, "fp32_contents"};
    case DataType::kFp64:
      return {7, "fp64_contents"};
    case DataType::kBytes:
      return {8, "bytes_contents"};
    case DataType::kFp16:
    case DataType::kBf16:
      break;
  }
  return {};
}

// Values in each field, by field number.
std::array<int, 9> sizes_of(const InferTensorContents& contents) {
  return {0,
          contents.bool_contents_size(),
          contents.int_contents_size(),
          contents.int64_contents_size(),
          contents.uint_contents_size(),
          contents.uint64_contents_size(),
          contents.fp32_contents_size(),
          contents.fp64_contents_size(),
          contents.bytes_contents_size()};
}

class InputReader {
 public:
  InputReader(const InputMessage& message, std::vector<Storage>& storage)
      : message_(message), storage_(storage) {}

  Result<Tensor, Refusal> read(const std::string* raw) {
    BATON_TRY(read_description());
    if (tensor_.place) {
      if (message_.has_contents()) return invalid(label_ + " has contents and shared memory");
    } else if (raw != nullptr) {
      tensor_.data = std::as_bytes(std::span(*raw));
      BATON_TRY(check_raw());
    } else {
      BATON_TRY(read_typed());
    }
    return std::move(tensor_);
  }

 private:
  Done read_description() {
    if (message_.name().empty()) return invalid("an input has no name");
    label_ = "input " + quoted(message_.name());
    BATON_ASSIGN(tensor_.place, place_of(label_, message_.parameters()));
    const auto type = parse_data_type(message_.datatype());
    if (!type.has_value()) {
      return invalid(label_ + ": unknown datatype " + quoted(message_.datatype()));
    }
    if (message_.shape_size() > kMostDims) {
      return invalid(label_ + ": the shape has more than " + std::to_string(kMostDims) +
                     " dimensions");
    }
    tensor_.name = message_.name();
    tensor_.type = *type;
    tensor_.shape.assign(message_.shape().begin(), message_.shape().end());
    const auto count = element_count(tensor_.shape);
    if (!count.has_value()) {
      return invalid(label_ + ": the shape " + shape_text(tensor_.shape) +
                     " holds a negative dimension or too many elements");
    }
    count_ = *count;
    return {};
  }

  Done check_raw() {
    const size_t size = element_size(tensor_.type);
    if (size == 0) {
      if (is_valid_bytes_tensor(tensor_.data, count_)) return {};
      return invalid(label_ + " does not hold the " + std::to_string(count_) +
                     " BYTES elements of its shape " + shape_text(tensor_.shape));
    }
    if (tensor_.data.size() == count_ * size) return {};
    return invalid(label_ + " holds " + std::to_string(tensor_.data.size()) + " bytes of " +
                   std::string(data_type_name(tensor_.type)) + ", its shape " +
                   shape_text(tensor_.shape) + " needs " + std::to_string(count_ * size));
  }

  Done read_typed() {
    const std::string type(data_type_name(tensor_.type));
    const TypedField field = typed_field(tensor_.type);
    if (field.number == 0) {
      return invalid(label_ + ": " + type + " has no typed contents, use raw_input_contents");
    }
    const std::array<int, 9> sizes = sizes_of(message_.contents());
    for (int number = 1; number < 9; ++number) {
      if (number == field.number || sizes[static_cast<size_t>(number)] == 0) continue;
      return invalid(label_ + ": " + type + " is carried in " + std::string(field.name) +
                     ", another field of the contents is set");
    }
    const int held = sizes[static_cast<size_t>(field.number)];
    if (static_cast<uint64_t>(held) != count_) {
      return invalid(label_ + " holds " + std::to_string(held) + " values in " +
                     std::string(field.name) + ", its shape " + shape_text(tensor_.shape) +
                     " needs " + std::to_string(count_));
    }
    return bind_contents(message_.contents());
  }

  Done bind_contents(const InferTensorContents& contents) {
    switch (tensor_.type) {
      case DataType::kInt8:
        return narrow<int8_t>(contents.int_contents());
      case DataType::kInt16:
        return narrow<int16_t>(contents.int_contents());
      case DataType::kUint8:
        return narrow<uint8_t>(contents.uint_contents());
      case DataType::kUint16:
        return narrow<uint16_t>(contents.uint_contents());
      case DataType::kBytes:
        return join(contents.bytes_contents());
      default:
        tensor_.data = view_in_place(contents);
        return {};
    }
  }

  // Types whose field holds the elements as they are.
  [[nodiscard]] std::span<const std::byte> view_in_place(
      const InferTensorContents& contents) const {
    switch (tensor_.type) {
      case DataType::kBool:
        return view_of(contents.bool_contents());
      case DataType::kInt32:
        return view_of(contents.int_contents());
      case DataType::kInt64:
        return view_of(contents.int64_contents());
      case DataType::kUint32:
        return view_of(contents.uint_contents());
      case DataType::kUint64:
        return view_of(contents.uint64_contents());
      case DataType::kFp32:
        return view_of(contents.fp32_contents());
      case DataType::kFp64:
        return view_of(contents.fp64_contents());
      default:
        return {};
    }
  }

  template <class Element, class Wide>
  Done narrow(const google::protobuf::RepeatedField<Wide>& field) {
    auto values = std::make_shared<std::vector<Element>>();
    values->reserve(static_cast<size_t>(field.size()));
    for (const Wide value : field) {
      if (!std::in_range<Element>(value)) {
        return invalid(label_ + ": a number does not fit " +
                       std::string(data_type_name(tensor_.type)));
      }
      values->push_back(static_cast<Element>(value));
    }
    tensor_.data = std::as_bytes(std::span(*values));
    storage_.push_back(std::move(values));
    return {};
  }

  Done join(const google::protobuf::RepeatedPtrField<std::string>& elements) {
    size_t total = 0;
    for (const std::string& element : elements) total += sizeof(uint32_t) + element.size();
    auto bytes = std::make_shared<Bytes>(total);
    std::byte* at = bytes->data();
    for (const std::string& element : elements) {
      const auto size = static_cast<uint32_t>(element.size());  // a message is below 2 GiB
      std::memcpy(at, &size, sizeof(size));
      if (size > 0) std::memcpy(at + sizeof(size), element.data(), size);
      at += sizeof(size) + size;
    }
    tensor_.data = *bytes;
    storage_.push_back(std::move(bytes));
    return {};
  }

  const InputMessage& message_;
  std::vector<Storage>& storage_;
  std::string label_;
  Tensor tensor_;
  uint64_t count_ = 0;
};

Done read_inputs(const inference::ModelInferRequest& message, InferRequest& request) {
  if (message.inputs_size() > kMostTensors) return invalid("the request has too many inputs");
  const bool raw = message.raw_input_contents_size() > 0;
  // Inputs in shared memory have no entry.
  const auto in_message = std::ranges::count_if(message.inputs(), [](const InputMessage& input) {
    return !input.parameters().contains("shared_memory_region");
  });
  if (raw && message.raw_input_contents_size() != in_message) {
    return invalid("raw_input_contents has " + std::to_string(message.raw_input_contents_size()) +
                   " entries for " + std::to_string(in_message) + " inputs");
  }
  int next_raw = 0;
  request.inputs.reserve(static_cast<size_t>(message.inputs_size()));
  for (int i = 0; i < message.inputs_size(); ++i) {
    const InputMessage& input = message.inputs(i);
    if (raw && input.has_contents()) {
      return invalid("input " + quoted(input.name()) +
                     " has contents although raw_input_contents is used; send one of them");
    }
    InputReader reader(input, request.storage);
    const bool in_raw = raw && !input.parameters().contains("shared_memory_region");
    const std::string* bytes = in_raw ? &message.raw_input_contents(next_raw++) : nullptr;
    BATON_ASSIGN(Tensor tensor, reader.read(bytes));
    request.inputs.push_back(std::move(tensor));
  }
  return {};
}

Done read_outputs(const inference::ModelInferRequest& message, InferRequest& request) {
  if (message.outputs_size() > kMostTensors) return invalid("the request has too many outputs");
  for (const auto& output : message.outputs()) {
    if (output.name().empty()) return invalid("an output has no name");
    RequestedOutput wanted{.name = output.name(), .binary = true, .classification = 0};
    BATON_ASSIGN(wanted.place, place_of("output " + quoted(output.name()), output.parameters()));
    const auto classes = output.parameters().find("classification");
    if (classes != output.parameters().end()) {
      const auto count = count_of(classes->first, classes->second);
      if (!count.has_value() || *count == 0) {
        return invalid("output " + quoted(output.name()) +
                       ": the parameter \"classification\" is a positive integer");
      }
      wanted.classification = static_cast<uint32_t>(std::min<uint64_t>(*count, UINT32_MAX));
    }
    if (wanted.place && wanted.classification > 0) {
      return invalid("output " + quoted(output.name()) +
                     ": classes are not written to shared memory");
    }
    request.outputs.push_back(std::move(wanted));
  }
  return {};
}

}  // namespace

Result<std::optional<int64_t>, Refusal> parse_version(std::string_view text) {
  if (text.empty()) return std::optional<int64_t>();
  int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size() || version <= 0) {
    return invalid("the model version " + quoted(text.substr(0, 64)) +
                   " is not a positive integer");
  }
  return std::optional<int64_t>(version);
}

Result<DecodedMessage, Refusal> decode_infer_request(
    std::shared_ptr<const inference::ModelInferRequest> message) {
  DecodedMessage out;
  InferRequest& request = out.request;
  request.model = message->model_name();
  if (request.model.empty()) return invalid("the request has no model_name");
  BATON_ASSIGN(request.version, parse_version(message->model_version()));
  if (message->id().size() > kMostNameBytes) return invalid("an id is longer than 1024 bytes");
  request.context.client_id = message->id();
  for (const auto& [key, parameter] : message->parameters()) {
    BATON_TRY(read_parameter(key, parameter, out));
  }
  BATON_TRY(read_inputs(*message, request));
  BATON_TRY(read_outputs(*message, request));
  request.binary_outputs_by_default = true;
  request.storage.push_back(std::move(message));
  return out;
}

}  // namespace baton::protocol::oip_proto
