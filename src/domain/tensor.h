#pragma once
// Tensors of requests and results: shapes, views of their bytes, and what keeps those bytes alive.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "domain/data_type.h"

namespace baton {

// Outermost dimension first. In a request every dimension is >= 0; in a specification -1 means any.
using Shape = std::vector<int64_t>;

// Product of the dimensions; nothing when one is negative or the product exceeds 2^40 elements.
[[nodiscard]] std::optional<uint64_t> element_count(std::span<const int64_t> shape);
// "[1,-1,3]"
[[nodiscard]] std::string shape_text(std::span<const int64_t> shape);

// Where a tensor stands in a region of shared memory that clients call by a name.
struct MemoryPlace {
  std::string region;
  uint64_t bytes = 0;
  uint64_t offset = 0;  // from the region's beginning
};

// A tensor by value of its description and by view of its bytes. Elements are row-major and
// little-endian; BYTES elements are a 32-bit length followed by that many bytes. Whoever made the
// view has checked that it holds exactly the shape's elements.
struct Tensor {
  std::string name;
  DataType type = DataType::kFp32;
  Shape shape;
  std::span<const std::byte> data;
  // In shared memory: of an input `data` is null until it has been read, of an output afterwards.
  std::shared_ptr<const MemoryPlace> place{};
};

// Keeps views alive: a request body, a decoded buffer, a pooled output buffer.
using Storage = std::shared_ptr<const void>;

// Checks that `data` is `count` BYTES elements and nothing more.
[[nodiscard]] bool is_valid_bytes_tensor(std::span<const std::byte> data, uint64_t count);

}  // namespace baton
