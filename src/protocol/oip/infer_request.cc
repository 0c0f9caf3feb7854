#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "protocol/oip/infer_codec.h"

namespace baton::protocol::oip {
namespace {

using json::JsonKind;
using json::JsonValue;

constexpr size_t kMostTensors = 1024;
constexpr size_t kMostDims = 64;
constexpr const char* kWrongClassification =
    "the parameter \"classification\" is a positive integer";

// The shared_memory_* parameters of a tensor.
struct PendingPlace {
  std::optional<std::string> region;
  std::optional<uint64_t> bytes;
  std::optional<uint64_t> offset;

  [[nodiscard]] bool given() const { return region || bytes || offset; }
  [[nodiscard]] std::shared_ptr<const MemoryPlace> made() const {
    if (!given()) return nullptr;
    return std::make_shared<const MemoryPlace>(
        MemoryPlace{region.value_or(""), bytes.value_or(0), offset.value_or(0)});
  }
};

// One entry of "inputs" while it is read. JSON data lands in the shared buffer at an offset, since
// the buffer may move.
struct PendingInput {
  Tensor tensor;
  bool has_name = false;
  bool has_type = false;
  bool has_shape = false;
  bool has_data = false;
  bool data_before_type = false;
  size_t json_begin = 0;
  size_t json_end = 0;
  std::optional<uint64_t> binary_size;
  PendingPlace place;
};

std::string label_of(const PendingInput& input) {
  return "input \"" + input.tensor.name + "\"";
}

class RequestReader {
 public:
  // `known` holds the inputs of a first pass: their types and shapes decode data that stands before
  // them in the text.
  explicit RequestReader(const std::vector<PendingInput>* known = nullptr) : known_(known) {}

  bool read(JsonValue& root) {
    return root.each_field([this](std::string_view key, JsonValue& value) {
      if (key == "id") return read_name(value, decoded_.request.context.client_id);
      if (key == "parameters") return read_request_parameters(value);
      if (key == "inputs") return read_inputs(value);
      if (key == "outputs") return read_outputs(value);
      return true;  // unknown keys are walked and ignored, as the protocol asks
    });
  }

  [[nodiscard]] bool needs_second_pass() const {
    for (const PendingInput& input : inputs_) {
      if (input.data_before_type) return true;
    }
    return false;
  }
  [[nodiscard]] bool has_inputs() const { return has_inputs_; }
  [[nodiscard]] std::vector<PendingInput>& inputs() { return inputs_; }
  DecodedRequest& decoded() { return decoded_; }
  std::vector<std::byte>& buffer() { return buffer_; }

 private:
  bool read_request_parameters(JsonValue& object) {
    return object.each_field([this](std::string_view key, JsonValue& value) {
      if (key == "binary_data_output") {
        return value.read_bool(decoded_.request.binary_outputs_by_default);
      }
      return read_scheduling(key, value);
    });
  }

  bool read_scheduling(std::string_view key, JsonValue& value) {
    switch (request_parameter(key)) {
      case RequestParameter::kTimeout:
        return read_count(value, key, decoded_.parameters.timeout_us);
      case RequestParameter::kPriority:
        return read_count(value, key, decoded_.parameters.priority);
      case RequestParameter::kSequenceId:
        return read_correlation_id(value, decoded_.request.sequence.id);
      case RequestParameter::kSequenceStart:
        return value.read_bool(decoded_.request.sequence.start) ||
               value.within("\"sequence_start\"");
      case RequestParameter::kSequenceEnd:
        return value.read_bool(decoded_.request.sequence.end) || value.within("\"sequence_end\"");
      case RequestParameter::kReserved:
        return value.fail("the parameter \"" + std::string(key) + "\" is reserved");
      case RequestParameter::kOnlyStream:
      case RequestParameter::kUnknown:
        break;
    }
    return true;
  }

  static bool read_name(JsonValue& value, std::string& out) {
    return value.read_string(out) &&
           (out.size() <= kMostNameBytes || value.fail("an id or name is longer than 1024 bytes"));
  }

  static bool read_count(JsonValue& value, std::string_view key, std::optional<uint64_t>& out) {
    uint64_t number = 0;
    if (!value.read_uint64(number)) {
      return value.fail("the parameter \"" + std::string(key) + "\" is a non-negative integer");
    }
    out = number;
    return true;
  }

  static bool read_correlation_id(JsonValue& value, CorrelationId& id) {
    id = {};
    if (value.kind() != JsonKind::kString) {
      return value.read_uint64(id.number) || value.within("\"sequence_id\"");
    }
    return value.read_string(id.text) &&
           (id.text.size() <= kMostCorrelationBytes || value.fail(std::string(kLongCorrelationId)));
  }

  bool read_inputs(JsonValue& array) {
    has_inputs_ = true;
    return array.each_element([this](JsonValue& element) {
      if (inputs_.size() == kMostTensors) return element.fail("\"inputs\" has too many entries");
      PendingInput input;
      const bool ok = element.each_field([&](std::string_view key, JsonValue& value) {
        return read_input_field(input, key, value);
      });
      if (!ok) {
        const std::string name =
            input.has_name ? input.tensor.name : std::to_string(inputs_.size());
        return element.within("input \"" + name + "\"");
      }
      if (!input.has_name) return element.fail("an input has no \"name\"");
      if (!input.has_type) return element.fail(label_of(input) + " has no \"datatype\"");
      if (!input.has_shape) return element.fail(label_of(input) + " has no \"shape\"");
      if (!check_place(input.place, element)) return element.within(label_of(input));
      if (input.place.given() && (input.has_data || input.binary_size)) {
        return element.fail(label_of(input) + " stands in shared memory and in the request");
      }
      input.tensor.place = input.place.made();
      inputs_.push_back(std::move(input));
      return true;
    });
  }

  bool read_input_field(PendingInput& input, std::string_view key, JsonValue& value) {
    if (key == "name") return input.has_name = read_name(value, input.tensor.name);
    if (key == "datatype") return input.has_type = read_type(value, input.tensor.type);
    if (key == "shape") return input.has_shape = read_shape(value, input.tensor.shape);
    if (key == "data") return read_data(input, value);
    if (key == "parameters") return read_input_parameters(input, value);
    return true;
  }

  static bool read_type(JsonValue& value, DataType& type) {
    std::string name;
    if (!read_name(value, name)) return false;
    const auto parsed = parse_data_type(name);
    if (!parsed) return value.fail("unknown datatype \"" + name + "\"");
    type = *parsed;
    return true;
  }

  static bool read_shape(JsonValue& value, Shape& shape) {
    const bool ok = value.each_element([&](JsonValue& element) {
      int64_t dim = 0;
      if (!element.read_int64(dim)) return element.fail("a shape holds integers");
      if (dim < 0) return element.fail("a shape holds no negative dimension");
      if (shape.size() == kMostDims) return element.fail("a shape has too many dimensions");
      shape.push_back(dim);
      return true;
    });
    if (ok && !element_count(shape)) return value.fail("a shape is too large");
    return ok;
  }

  bool read_data(PendingInput& input, JsonValue& value) {
    input.has_data = true;
    const PendingInput* description = &input;
    if (!input.has_type || !input.has_shape) {
      if (known_ == nullptr) {
        input.data_before_type = true;
        return value.skip();
      }
      description = &(*known_)[inputs_.size()];
    }
    input.json_begin = buffer_.size();
    if (!value.append_elements(description->tensor.type, description->tensor.shape, buffer_)) {
      return value.fail("the data of an input does not fit its datatype and shape");
    }
    input.json_end = buffer_.size();
    // Keeps every tensor aligned for any element type.
    buffer_.resize((buffer_.size() + 15) / 16 * 16);
    return true;
  }

  bool read_input_parameters(PendingInput& input, JsonValue& object) {
    return object.each_field([&](std::string_view key, JsonValue& value) {
      if (key == "binary_data_size") return read_count(value, key, input.binary_size);
      return read_place(input.place, key, value);
    });
  }

  // True for other keys, which it leaves.
  static bool read_place(PendingPlace& place, std::string_view key, JsonValue& value) {
    if (key == "shared_memory_byte_size") return read_count(value, key, place.bytes);
    if (key == "shared_memory_offset") return read_count(value, key, place.offset);
    if (key != "shared_memory_region") return true;
    return read_name(value, place.region.emplace()) || value.within("\"shared_memory_region\"");
  }
  static bool check_place(const PendingPlace& place, JsonValue& value) {
    if (!place.given() || (place.region && place.bytes && !place.region->empty())) return true;
    return value.fail(
        "shared memory needs \"shared_memory_region\" and \"shared_memory_byte_size\"");
  }

  bool read_outputs(JsonValue& array) {
    auto& outputs = decoded_.request.outputs;
    return array.each_element([&](JsonValue& element) {
      if (outputs.size() == kMostTensors) return element.fail("\"outputs\" has too many entries");
      RequestedOutput output;
      std::optional<bool> binary;
      PendingPlace place;
      const bool ok = element.each_field([&](std::string_view key, JsonValue& value) {
        if (key == "name") return read_name(value, output.name);
        if (key == "parameters") {
          return read_output_parameters(value, binary, output.classification, place);
        }
        return true;
      });
      if (!ok) return false;
      if (output.name.empty()) return element.fail("an output has no \"name\"");
      if (!check_place(place, element)) return false;
      if (place.given() && output.classification > 0) {
        return element.fail("classes of an output are not written to shared memory");
      }
      output.place = place.made();
      explicit_binary_.push_back(binary);
      outputs.push_back(std::move(output));
      return true;
    });
  }

  bool read_output_parameters(JsonValue& object, std::optional<bool>& binary,
                              uint32_t& classification, PendingPlace& place) {
    return object.each_field([&](std::string_view key, JsonValue& value) {
      if (key == "binary_data") {
        bool flag = false;
        const bool ok = value.read_bool(flag);
        binary = flag;
        return ok;
      }
      if (key == "classification") {
        uint64_t count = 0;
        if (!value.read_uint64(count)) return value.within(kWrongClassification);
        if (count == 0) return value.fail(kWrongClassification);
        classification = static_cast<uint32_t>(std::min<uint64_t>(count, UINT32_MAX));
        return true;
      }
      return read_place(place, key, value);
    });
  }

 public:
  // The request-wide default may stand behind the outputs, so it is applied at the end.
  void apply_binary_default() {
    InferRequest& request = decoded_.request;
    for (size_t i = 0; i < request.outputs.size(); ++i) {
      request.outputs[i].binary = explicit_binary_[i].value_or(request.binary_outputs_by_default);
    }
  }

 private:
  const std::vector<PendingInput>* known_;
  DecodedRequest decoded_;
  std::vector<PendingInput> inputs_;
  std::vector<std::optional<bool>> explicit_binary_;
  std::vector<std::byte> buffer_;
  bool has_inputs_ = false;  // perhaps none in them
};

Refusal invalid(std::string message) {
  return {EndReason::kInvalid, std::move(message), {}};
}

// The length of the JSON part. The header's value lies within the body or the request is refused.
Result<size_t, Refusal> json_length(const RequestBody& body) {
  if (!body.header_length) return body.bytes.size();
  const std::string_view text = *body.header_length;
  uint64_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error != std::errc() || end != text.data() + text.size() || length > body.bytes.size()) {
    return fail(invalid("Inference-Header-Content-Length must be an integer from 0 to the body's " +
                        std::to_string(body.bytes.size()) + " bytes"));
  }
  if (length == 0) {
    return fail(Refusal{EndReason::kUnsupported,
                        "a raw binary request (Inference-Header-Content-Length: 0) is not offered; "
                        "send the JSON header with binary_data_size",
                        {}});
  }
  return length;
}

// Points the tensor at its bytes and checks that they are exactly its elements.
class DataBinder {
 public:
  DataBinder(std::string_view binary, std::span<const std::byte> json_data)
      : binary_(binary), json_data_(json_data) {}

  Result<void, Refusal> bind(PendingInput& input) {
    if (input.tensor.place) return {};  // read later
    if (input.binary_size && input.has_data) {
      return fail(invalid(label_of(input) + " has both \"data\" and \"binary_data_size\""));
    }
    if (input.binary_size) {
      if (*input.binary_size > binary_.size()) {
        return fail(invalid(label_of(input) + ": binary_data_size " +
                            std::to_string(*input.binary_size) + " exceeds the " +
                            std::to_string(binary_.size()) + " bytes left in the body"));
      }
      input.tensor.data = std::as_bytes(std::span(binary_.substr(0, *input.binary_size)));
      binary_.remove_prefix(*input.binary_size);
    } else if (input.has_data) {
      input.tensor.data = json_data_.subspan(input.json_begin, input.json_end - input.json_begin);
    } else {
      return fail(invalid(label_of(input) + " has no \"data\""));
    }
    return check(input);
  }

  [[nodiscard]] size_t bytes_left() const { return binary_.size(); }

 private:
  static Result<void, Refusal> check(const PendingInput& input) {
    const Tensor& tensor = input.tensor;
    const uint64_t count = *element_count(tensor.shape);
    const size_t size = element_size(tensor.type);
    if (size == 0) {
      if (is_valid_bytes_tensor(tensor.data, count)) return {};
      return fail(invalid(label_of(input) + " does not hold the " + std::to_string(count) +
                          " BYTES elements of its shape " + shape_text(tensor.shape)));
    }
    if (tensor.data.size() == count * size) return {};
    return fail(invalid(label_of(input) + " holds " + std::to_string(tensor.data.size()) +
                        " bytes of " + std::string(data_type_name(tensor.type)) + ", its shape " +
                        shape_text(tensor.shape) + " needs " + std::to_string(count * size)));
  }

  std::string_view binary_;
  std::span<const std::byte> json_data_;
};

}  // namespace

uint64_t json_bytes(const RequestBody& body) {
  return json_length(body).value_or(0);
}

Result<DecodedRequest, Refusal> decode_infer_request(const RequestBody& body,
                                                     json::JsonParser& parser) {
  BATON_ASSIGN(const size_t length, json_length(body));
  // The bytes behind the JSON are the padding of its parser: body and padding are one buffer.
  const std::string_view text = body.bytes.substr(0, length);
  RequestReader first;
  auto parsed = parser.parse(text, [&](JsonValue& root) { return first.read(root); });
  RequestReader second(&first.inputs());
  RequestReader* reader = &first;
  if (parsed.has_value() && first.needs_second_pass()) {
    parsed = parser.parse(text, [&](JsonValue& root) { return second.read(root); });
    reader = &second;
  }
  if (!parsed.has_value()) {
    return fail(invalid("the request is not valid: " + parsed.error().message));
  }
  if (!reader->has_inputs()) return fail(invalid("the request has no \"inputs\""));
  reader->apply_binary_default();

  DecodedRequest decoded = std::move(reader->decoded());
  DataBinder binder(body.bytes.substr(length), reader->buffer());
  decoded.request.inputs.reserve(reader->inputs().size());
  for (PendingInput& input : reader->inputs()) {
    BATON_TRY(binder.bind(input));
    decoded.request.inputs.push_back(std::move(input.tensor));
  }
  if (binder.bytes_left() != 0) {
    return fail(invalid("the body has " + std::to_string(binder.bytes_left()) +
                        " bytes that belong to no input"));
  }
  uint64_t& kept = decoded.request.context.bytes;
  if (length < body.bytes.size()) {
    kept += body.bytes.size();
    decoded.request.storage.push_back(body.storage);
  }
  if (!reader->buffer().empty()) {
    kept += reader->buffer().capacity();
    // Moved, its bytes stay where the tensors look.
    decoded.request.storage.push_back(
        std::make_shared<std::vector<std::byte>>(std::move(reader->buffer())));
  }
  return decoded;
}

}  // namespace baton::protocol::oip
