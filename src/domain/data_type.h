#pragma once
// The tensor element types of the Open Inference Protocol with its BF16 extension.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace baton {

enum class DataType : uint8_t {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFp16,
  kBf16,
  kFp32,
  kFp64,
  kBytes,
};
inline constexpr int kDataTypeCount = 14;

// The protocol's spelling: "FP32", "BYTES", ...
[[nodiscard]] std::string_view data_type_name(DataType type);
[[nodiscard]] std::optional<DataType> parse_data_type(std::string_view name);
// Bytes of one element; 0 for BYTES, whose elements carry their length.
[[nodiscard]] size_t element_size(DataType type);

}  // namespace baton
