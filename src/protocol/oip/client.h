#pragma once
// The client's side of the Open Inference Protocol over REST, for `baton bench` and `baton infer`.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/model.h"
#include "protocol/json/reader.h"

namespace baton::protocol::oip {

struct ModelMetadata {
  std::string name;
  std::vector<TensorSpec> inputs;  // dims as the server says them, batch dimension included
  std::vector<TensorSpec> outputs;
};

// The body of GET /v2/models/NAME. Error: a sentence.
[[nodiscard]] Result<ModelMetadata, std::string> parse_model_metadata(std::string_view text,
                                                                      json::JsonParser& parser);

struct EncodedRequest {
  std::string body;          // JSON, then the tensors' bytes
  size_t header_length = 0;  // of the JSON: the Inference-Header-Content-Length
};

enum class OutputForm : uint8_t { kBinary, kJson };
// Every input binary, every output as `form` says.
[[nodiscard]] EncodedRequest encode_infer_request(std::span<const Tensor> inputs,
                                                  OutputForm form = OutputForm::kBinary);

// Percent-encoded but for letters, digits and -_.~: one segment of a path, or a file's name.
[[nodiscard]] std::string path_segment(std::string_view text);
// "/v2/models/NAME", percent-encoded.
[[nodiscard]] std::string model_target(std::string_view model);

}  // namespace baton::protocol::oip
