#include "service/batching/compare_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"

namespace baton::service {
namespace {

template <class T>
T load(std::span<const std::byte> data, size_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof value, sizeof value);
  return value;
}

double number_at(const Tensor& tensor, size_t index) {
  switch (tensor.type) {
    case DataType::kFp16:
      return double{fp16_to_float(load<uint16_t>(tensor.data, index))};
    case DataType::kBf16:
      return double{bf16_to_float(load<uint16_t>(tensor.data, index))};
    case DataType::kFp32:
      return double{load<float>(tensor.data, index)};
    default:
      return load<double>(tensor.data, index);
  }
}

// Zero: compared exactly.
double tolerance_of(DataType type) {
  switch (type) {
    case DataType::kFp16:
      return 1e-2;
    case DataType::kBf16:
      return 5e-2;
    case DataType::kFp32:
      return 1e-4;
    case DataType::kFp64:
      return 1e-8;
    default:
      return 0;
  }
}

bool close(double a, double b, double allowed) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;  // infinities
  return std::abs(a - b) <= allowed + allowed * std::max(std::abs(a), std::abs(b));
}

std::optional<std::string> tensor_difference(const Tensor& a, const Tensor& b, double tolerance) {
  if (a.name != b.name || a.type != b.type || a.shape != b.shape) {
    return fmt::format("output '{}' is {} {} and {} {}", a.name, data_type_name(a.type),
                       shape_text(a.shape), data_type_name(b.type), shape_text(b.shape));
  }
  const double own = tolerance_of(a.type);
  if (own == 0) {
    if (std::ranges::equal(a.data, b.data)) return std::nullopt;
    const auto at = std::ranges::mismatch(a.data, b.data).in1 - a.data.begin();
    return fmt::format("output '{}' differs at byte {}", a.name, at);
  }
  const double allowed = std::max(own, tolerance);
  const size_t count = std::min(a.data.size(), b.data.size()) / element_size(a.type);
  for (size_t i = 0; i < count; ++i) {
    const double x = number_at(a, i);
    const double y = number_at(b, i);
    if (close(x, y, allowed)) continue;
    return fmt::format("output '{}', element {}: {} and {}", a.name, i, x, y);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> first_difference(const InferResult& a, const InferResult& b,
                                            double tolerance) {
  if (a.outputs.size() != b.outputs.size()) {
    return fmt::format("{} and {} outputs", a.outputs.size(), b.outputs.size());
  }
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    if (auto difference = tensor_difference(a.outputs[i], b.outputs[i], tolerance))
      return difference;
  }
  return std::nullopt;
}

}  // namespace baton::service
