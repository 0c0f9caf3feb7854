#include "domain/model.h"

#include <array>
#include <span>

namespace baton {
namespace {

Shape substitute(const Shape& pattern, std::span<const int64_t> from_pattern,
                 std::span<const int64_t> from) {
  Shape shape;
  size_t next = 0;
  for (int64_t dim : pattern) {
    if (dim != -1) {
      shape.push_back(dim);
      continue;
    }
    while (next < from_pattern.size() && from_pattern[next] != -1) ++next;
    shape.push_back(next < from.size() ? from[next++] : 1);
  }
  return shape;
}

Shape reshaped(const Shape& shape, const Shape& to, const Shape& from, bool batches) {
  const size_t lead = batches ? 1 : 0;
  if (shape.size() < lead) return shape;
  Shape out = substitute(to, from, std::span<const int64_t>(shape).subspan(lead));
  if (batches) out.insert(out.begin(), shape.front());
  return element_count(out) == element_count(shape) ? out : shape;
}

}  // namespace

Shape runtime_shape(const TensorSpec& spec, const Shape& client, bool batches) {
  return spec.reshape ? reshaped(client, *spec.reshape, spec.dims, batches) : client;
}

Shape client_shape(const TensorSpec& spec, const Shape& runtime, bool batches) {
  return spec.reshape ? reshaped(runtime, spec.dims, *spec.reshape, batches) : runtime;
}

std::string_view model_state_name(ModelState state) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "pending", "loading", "warming", "ready", "draining", "stopping", "gone", "failed"};
  return kNames[static_cast<size_t>(state)];
}

}  // namespace baton
