#include "protocol/oip/client.h"

#include <cctype>

#include "base/bytes.h"
#include "base/json_writer.h"

namespace baton::protocol::oip {
namespace {

using json::JsonValue;

bool read_dims(JsonValue& array, Shape& dims) {
  return array.each_element([&](JsonValue& element) {
    int64_t dim = 0;
    const bool ok = element.read_int64(dim);
    dims.push_back(dim);
    return ok;
  });
}

bool read_spec(JsonValue& object, TensorSpec& spec) {
  return object.each_field([&](std::string_view key, JsonValue& value) {
    if (key == "name") return value.read_string(spec.name);
    if (key == "shape") return read_dims(value, spec.dims);
    if (key != "datatype") return true;
    std::string name;
    if (!value.read_string(name)) return false;
    const auto type = parse_data_type(name);
    if (!type) return value.fail("\"" + name + "\" is no data type of the protocol");
    spec.type = *type;
    return true;
  });
}

bool read_specs(JsonValue& array, std::vector<TensorSpec>& specs) {
  return array.each_element(
      [&](JsonValue& element) { return read_spec(element, specs.emplace_back()); });
}

}  // namespace

Result<ModelMetadata, std::string> parse_model_metadata(std::string_view text,
                                                        json::JsonParser& parser) {
  ModelMetadata metadata;
  const auto parsed = parser.parse_copy(text, [&](JsonValue& root) {
    return root.each_field([&](std::string_view key, JsonValue& value) {
      if (key == "name") return value.read_string(metadata.name);
      if (key == "inputs") return read_specs(value, metadata.inputs);
      if (key == "outputs") return read_specs(value, metadata.outputs);
      return true;
    });
  });
  if (!parsed.has_value()) return fail("the metadata cannot be read: " + parsed.error().message);
  return metadata;
}

EncodedRequest encode_infer_request(std::span<const Tensor> inputs, OutputForm form) {
  EncodedRequest out;
  JsonWriter json(out.body);
  json.begin_object().key("inputs").begin_array();
  for (const Tensor& input : inputs) {
    json.begin_object().field("name", input.name).field("datatype", data_type_name(input.type));
    json.key("shape").begin_array();
    for (int64_t dim : input.shape) json.number(dim);
    json.end_array().key("parameters").begin_object();
    json.field("binary_data_size", uint64_t{input.data.size()}).end_object().end_object();
  }
  json.end_array().key("parameters").begin_object();
  json.field("binary_data_output", form == OutputForm::kBinary);
  json.end_object().end_object();
  out.header_length = out.body.size();
  for (const Tensor& input : inputs) out.body += as_chars(input.data);
  return out;
}

std::string path_segment(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string segment;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_' || c == '.' || c == '~') {
      segment += c;
      continue;
    }
    segment += '%';
    segment += kDigits[byte >> 4];
    segment += kDigits[byte & 15];
  }
  return segment;
}

std::string model_target(std::string_view model) {
  return "/v2/models/" + path_segment(model);
}

}  // namespace baton::protocol::oip
