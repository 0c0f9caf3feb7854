#include "protocol/oip/client_answer.h"

#include <charconv>
#include <memory>
#include <vector>

namespace baton::protocol::oip {
namespace {

using json::JsonValue;

struct Output {
  Tensor tensor;
  bool has_type = false;
  bool has_shape = false;
  bool has_data = false;
  std::optional<uint64_t> binary_size;
};

bool read_type(JsonValue& value, Output& output) {
  std::string name;
  if (!value.read_string(name)) return false;
  const auto type = parse_data_type(name);
  if (!type) return value.fail("unknown datatype \"" + name + "\"");
  output.tensor.type = *type;
  return output.has_type = true;
}

bool read_shape(JsonValue& value, Output& output) {
  const bool ok = value.each_element(
      [&](JsonValue& element) { return element.read_int64(output.tensor.shape.emplace_back()); });
  if (!ok) return false;
  output.has_shape = element_count(output.tensor.shape).has_value();
  return output.has_shape || value.fail("a shape is negative or too large");
}

bool read_parameters(JsonValue& object, Output& output) {
  return object.each_field([&](std::string_view key, JsonValue& value) {
    uint64_t size = 0;
    if (key != "binary_data_size") return true;
    if (!value.read_uint64(size)) return false;
    output.binary_size = size;
    return true;
  });
}

// All but the data, which may stand before its type.
bool read_output(JsonValue& object, Output& output) {
  const bool ok = object.each_field([&](std::string_view key, JsonValue& value) {
    if (key == "name") return value.read_string(output.tensor.name);
    if (key == "datatype") return read_type(value, output);
    if (key == "shape") return read_shape(value, output);
    if (key == "parameters") return read_parameters(value, output);
    if (key == "data") output.has_data = true;
    return true;
  });
  if (!ok) return false;
  if (!output.has_type || !output.has_shape) return object.fail("an output lacks type or shape");
  return output.has_data != output.binary_size.has_value() ||
         object.fail("an output has no data, or twice");
}

bool read_version(JsonValue& value, std::string& version) {
  if (value.kind() == json::JsonKind::kString) return value.read_string(version);
  int64_t number = 0;
  if (!value.read_int64(number)) return false;
  version = std::to_string(number);
  return true;
}

bool read_description(JsonValue& root, InferAnswer& answer, std::vector<Output>& outputs) {
  return root.each_field([&](std::string_view key, JsonValue& value) {
    if (key == "model_name") return value.read_string(answer.model);
    if (key == "model_version") return read_version(value, answer.version);
    if (key != "outputs") return true;
    return value.each_element(
        [&](JsonValue& element) { return read_output(element, outputs.emplace_back()); });
  });
}

bool read_data(JsonValue& root, std::vector<Output>& outputs, std::vector<Storage>& storage) {
  size_t next = 0;
  return root.each_field([&](std::string_view part, JsonValue& array) {
    if (part != "outputs") return true;
    return array.each_element([&](JsonValue& object) {
      Tensor& tensor = outputs[next++].tensor;
      return object.each_field([&](std::string_view key, JsonValue& value) {
        if (key != "data") return true;
        auto data = std::make_shared<std::vector<std::byte>>();
        if (!value.append_elements(tensor.type, tensor.shape, *data)) {
          return value.within("output \"" + tensor.name + "\"");
        }
        tensor.data = *data;
        storage.push_back(std::move(data));
        return true;
      });
    });
  });
}

bool holds_its_elements(const Tensor& tensor) {
  const uint64_t count = element_count(tensor.shape).value_or(0);
  const size_t size = element_size(tensor.type);
  return size == 0 ? is_valid_bytes_tensor(tensor.data, count) : tensor.data.size() == count * size;
}

Result<void, std::string> bind_binary(Output& output, std::string_view& binary) {
  const uint64_t size = *output.binary_size;
  if (size > binary.size()) {
    return fail("output \"" + output.tensor.name + "\" is longer than the answer");
  }
  output.tensor.data = std::as_bytes(std::span(binary.substr(0, size)));
  binary.remove_prefix(size);
  return {};
}

}  // namespace

Result<std::string_view, std::string> answer_json(std::string_view body,
                                                  std::optional<std::string_view> header_length) {
  if (!header_length) return body;
  uint64_t length = 0;
  const char* const last = header_length->data() + header_length->size();
  const auto [end, error] = std::from_chars(header_length->data(), last, length);
  if (error != std::errc() || end != last || length > body.size()) {
    return fail(std::string("the answer's Inference-Header-Content-Length is wrong"));
  }
  return body.substr(0, length);
}

Result<InferAnswer, std::string> parse_infer_answer(std::string_view body,
                                                    std::optional<std::string_view> header_length,
                                                    json::JsonParser& parser) {
  BATON_ASSIGN(const std::string_view text, answer_json(body, header_length));
  InferAnswer answer;
  std::vector<Output> outputs;
  auto parsed = parser.parse_copy(
      text, [&](JsonValue& root) { return read_description(root, answer, outputs); });
  if (parsed.has_value()) {
    parsed = parser.parse_copy(
        text, [&](JsonValue& root) { return read_data(root, outputs, answer.result.storage); });
  }
  if (!parsed.has_value()) return fail("the answer cannot be read: " + parsed.error().message);
  std::string_view binary = body.substr(text.size());
  for (Output& output : outputs) {
    if (output.binary_size) BATON_TRY(bind_binary(output, binary));
    if (!holds_its_elements(output.tensor)) {
      return fail("output \"" + output.tensor.name + "\" does not hold the elements of its shape " +
                  shape_text(output.tensor.shape));
    }
    answer.result.outputs.push_back(std::move(output.tensor));
  }
  return answer;
}

std::string error_text(std::string_view body, json::JsonParser& parser) {
  std::string text;
  const auto parsed = parser.parse_copy(body, [&](JsonValue& root) {
    return root.each_field([&](std::string_view key, JsonValue& value) {
      return key != "error" || value.read_string(text);
    });
  });
  return parsed.has_value() && !text.empty() ? text : std::string(body);
}

}  // namespace baton::protocol::oip
