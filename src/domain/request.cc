#include "domain/request.h"

#include <algorithm>

#include "base/hash.h"

namespace baton {
namespace {

constexpr std::array<std::string_view, 3> kClassNames = {"interactive", "batch", "experimental"};

std::span<const int64_t> compared_dims(const Tensor& tensor, bool batched) {
  const std::span<const int64_t> dims(tensor.shape);
  return batched && !dims.empty() ? dims.subspan(1) : dims;
}

}  // namespace

std::string_view traffic_class_name(TrafficClass traffic_class) {
  return kClassNames[static_cast<size_t>(traffic_class)];
}

std::optional<TrafficClass> parse_traffic_class(std::string_view name) {
  const auto found = std::ranges::find(kClassNames, name);
  if (found == kClassNames.end()) return std::nullopt;
  return static_cast<TrafficClass>(found - kClassNames.begin());
}

std::string_view protocol_name(Protocol protocol) {
  static constexpr std::array<std::string_view, 3> kNames = {"http", "grpc", "internal"};
  return kNames[static_cast<size_t>(protocol)];
}

bool same_layout(const InferRequest& a, const InferRequest& b, bool batched) {
  return std::ranges::equal(a.inputs, b.inputs, [&](const Tensor& x, const Tensor& y) {
    return x.type == y.type && x.shape.size() == y.shape.size() && x.name == y.name &&
           std::ranges::equal(compared_dims(x, batched), compared_dims(y, batched));
  });
}

uint64_t layout_hash(const InferRequest& request, bool batched) {
  Fnv1a hash;
  for (const Tensor& input : request.inputs) {
    hash.add(input.name);
    hash.add(static_cast<uint64_t>(input.type));
    hash.add(input.shape.size());
    for (int64_t dim : compared_dims(input, batched)) hash.add(static_cast<uint64_t>(dim));
  }
  return hash.value();
}

}  // namespace baton
