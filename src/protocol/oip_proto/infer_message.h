#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/end_reason.h"
#include "domain/request.h"
#include "domain/request_parameters.h"

namespace inference {
class ModelInferRequest;
}

namespace baton::protocol::oip_proto {

struct DecodedMessage {
  InferRequest request;             // of the context only client_id is set
  SchedulingParameters parameters;  // for the caller to apply to the context
};

// The tensors of the result are views into `message` (zero copy) or into buffers that the request
// keeps. Refused: mixed typed and raw contents, contents of another type than the datatype's,
// values out of range, counts and sizes that differ from the shape,
// reserved parameters.
[[nodiscard]] Result<DecodedMessage, Refusal> decode_infer_request(
    std::shared_ptr<const inference::ModelInferRequest> message);

// "" is none; otherwise a positive decimal number.
[[nodiscard]] Result<std::optional<int64_t>, Refusal> parse_version(std::string_view text);

struct ResponseNames {
  std::string_view model;
  int64_t version = 0;
  std::string_view id;
  bool streamed = false;  // says that it is its request's last answer: `triton_final_response`
};

// A serialized ModelInferResponse with raw_output_contents: `head`, then for each output in order
// its `prefix` (field tag and length) and its bytes.
struct EncodedMessage {
  std::string head;
  struct Raw {
    std::string prefix;
    std::span<const std::byte> bytes;
  };
  std::vector<Raw> raws;
};

// What makes a ModelInferResponse of `size` bytes, which follows, a ModelStreamInferResponse.
[[nodiscard]] std::string stream_prefix(size_t size);

[[nodiscard]] EncodedMessage encode_infer_response(const InferResult& result,
                                                   const ResponseNames& names);

}  // namespace baton::protocol::oip_proto
