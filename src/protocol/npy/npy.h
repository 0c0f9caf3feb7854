#pragma once
// NumPy's .npy format, versions 1 to 3 (numpy.lib.format).

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/tensor.h"

namespace baton::protocol::npy {

struct Array {
  DataType type = DataType::kFp32;
  Shape shape;
  std::vector<std::byte> data;  // as in a Tensor: row-major, little-endian, BYTES with lengths
};

// Copies the elements of a whole file. Error: a sentence.
[[nodiscard]] Result<Array, std::string> read_npy(std::string_view file);

// The file that numpy.load reads the tensor from; BF16 becomes float32. Error: a sentence, for
// BYTES that no fixed width holds.
[[nodiscard]] Result<std::string, std::string> write_npy(const Tensor& tensor);

}  // namespace baton::protocol::npy
