#include "protocol/oip/client_inputs.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace baton::protocol::oip {
namespace {

using json::JsonKind;
using json::JsonValue;

// The shape of nested arrays, from the first element of each; whether the others agree is found
// when they are read.
bool read_nesting(JsonValue& value, size_t level, Shape& shape) {
  if (value.kind() != JsonKind::kArray) return true;
  shape.push_back(0);
  int64_t elements = 0;
  const bool ok = value.each_element([&](JsonValue& element) {
    return ++elements > 1 || read_nesting(element, level + 1, shape);
  });
  shape[level] = elements;
  return ok;
}

bool read_shapes(JsonValue& root, std::span<const TensorSpec> specs, std::vector<Tensor>& tensors) {
  return root.each_field([&](std::string_view key, JsonValue& value) {
    const auto spec = std::ranges::find(specs, key, &TensorSpec::name);
    if (spec == specs.end()) {
      return value.fail("the model has no input \"" + std::string(key) + "\"");
    }
    Tensor& tensor = tensors.emplace_back();
    tensor.name = spec->name;
    tensor.type = spec->type;
    if (!read_nesting(value, 0, tensor.shape)) return false;
    return element_count(tensor.shape).has_value() || value.fail("a shape is too large");
  });
}

bool read_data(JsonValue& root, std::span<Tensor> tensors, std::vector<Storage>& storage) {
  size_t next = 0;
  return root.each_field([&](std::string_view, JsonValue& value) {
    Tensor& tensor = tensors[next++];
    auto data = std::make_shared<std::vector<std::byte>>();
    if (!value.append_elements(tensor.type, tensor.shape, *data)) {
      return value.within("input \"" + tensor.name + "\"");
    }
    tensor.data = *data;
    storage.push_back(std::move(data));
    return true;
  });
}

}  // namespace

Result<bool, std::string> is_infer_request(std::string_view text, json::JsonParser& parser) {
  bool whole = false;
  const auto parsed = parser.parse_copy(text, [&](JsonValue& root) {
    return root.each_field([&](std::string_view key, JsonValue& value) {
      if (key != "inputs" || value.kind() != JsonKind::kArray) return true;
      whole = true;
      return value.each_element([&](JsonValue& element) {
        whole = whole && element.kind() == JsonKind::kObject;
        return true;
      });
    });
  });
  if (!parsed.has_value()) return fail(parsed.error().message);
  return whole;
}

Result<void, std::string> read_named_arrays(std::string_view text,
                                            std::span<const TensorSpec> specs,
                                            InferRequest& request, json::JsonParser& parser) {
  std::vector<Tensor> tensors;
  auto parsed =
      parser.parse_copy(text, [&](JsonValue& root) { return read_shapes(root, specs, tensors); });
  if (parsed.has_value()) {
    parsed = parser.parse_copy(
        text, [&](JsonValue& root) { return read_data(root, tensors, request.storage); });
  }
  if (!parsed.has_value()) return fail(parsed.error().message);
  std::ranges::move(tensors, std::back_inserter(request.inputs));
  return {};
}

}  // namespace baton::protocol::oip
