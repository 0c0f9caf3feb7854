// Binary tensors: the first two bytes choose Inference-Header-Content-Length, as a number or as
// text. Whatever it says, no view leaves the body and what is accepted holds its shape's elements.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "domain/tensor.h"
#include "protocol/oip/infer_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace baton;
  if (size < 2) return 0;
  const size_t body_size = size - 2;
  std::string text(reinterpret_cast<const char*>(data) + 2, body_size);
  text.append(64, '\0');
  std::string length = std::to_string(data[0] | (data[1] << 8));
  if (data[1] == 0xff) length.insert(0, 1, static_cast<char>(data[0]));
  static protocol::json::JsonParser parser;
  const std::string_view body = std::string_view(text).substr(0, body_size);
  const auto decoded =
      protocol::oip::decode_infer_request({body, nullptr, std::string_view(length)}, parser);
  if (!decoded.has_value()) return 0;
  for (const Tensor& tensor : decoded->request.inputs) {
    const auto count = element_count(tensor.shape);
    const size_t element = element_size(tensor.type);
    const bool fits = count && (element != 0 ? tensor.data.size() == *count * element
                                             : is_valid_bytes_tensor(tensor.data, *count));
    if (!fits) std::abort();
    uint8_t sum = 0;  // reads every byte: the sanitizer sees a view that left the body
    for (std::byte value : tensor.data)
      sum = static_cast<uint8_t>(sum + static_cast<uint8_t>(value));
    asm volatile("" : : "r"(sum));
  }
  return 0;
}
