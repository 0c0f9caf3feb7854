#include "domain/tensor.h"

#include <cstring>

namespace baton {

std::optional<uint64_t> element_count(std::span<const int64_t> shape) {
  constexpr uint64_t kMost = 1ULL << 40;
  uint64_t count = 1;
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      empty = true;
      continue;
    }
    if (static_cast<uint64_t>(dim) > kMost / count) return std::nullopt;
    count *= static_cast<uint64_t>(dim);
  }
  return empty ? 0 : count;
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (int64_t dim : shape) {
    if (text.size() > 1) text += ',';
    text += std::to_string(dim);
  }
  text += ']';
  return text;
}

bool is_valid_bytes_tensor(std::span<const std::byte> data, uint64_t count) {
  size_t offset = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (data.size() - offset < sizeof(uint32_t)) return false;
    uint32_t length = 0;
    std::memcpy(&length, data.data() + offset, sizeof length);
    offset += sizeof length;
    if (data.size() - offset < length) return false;
    offset += length;
  }
  return offset == data.size();
}

}  // namespace baton
