// .npy files: no bytes crash the reader, what is accepted holds its shape's elements, and what is
// written of it is read as the same again.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "protocol/npy/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace baton;
  const auto array = protocol::npy::read_npy({reinterpret_cast<const char*>(data), size});
  if (!array.has_value()) {
    if (array.error().empty()) std::abort();
    return 0;
  }
  const auto count = element_count(array->shape);
  const size_t element = element_size(array->type);
  const bool fits = count && (element != 0 ? array->data.size() == *count * element
                                           : is_valid_bytes_tensor(array->data, *count));
  if (!fits) std::abort();
  const auto written = protocol::npy::write_npy({"x", array->type, array->shape, array->data});
  if (!written.has_value()) std::abort();
  const auto again = protocol::npy::read_npy(*written);
  if (!again.has_value() || again->shape != array->shape) std::abort();
  if (array->type != DataType::kBf16 && again->data != array->data) std::abort();
  return 0;
}
