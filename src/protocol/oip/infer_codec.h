#pragma once
// Inference requests and answers of the Open Inference Protocol over REST, binary tensor extension
// included.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/end_reason.h"
#include "domain/request.h"
#include "domain/request_parameters.h"
#include "protocol/json/reader.h"

namespace baton::protocol::oip {

inline constexpr std::string_view kHeaderLengthHeader = "inference-header-content-length";

struct RequestBody {
  std::string_view bytes;                         // padded: see JsonParser
  Storage storage;                                // keeps `bytes` alive
  std::optional<std::string_view> header_length;  // value of Inference-Header-Content-Length
};

// Of the JSON in a body: what decoding it costs, beside O(header) for binary tensors.
[[nodiscard]] uint64_t json_bytes(const RequestBody& body);

struct DecodedRequest {
  InferRequest
      request;  // id, inputs, outputs, storage are set; the rest of the context is the caller's,
                // but for `bytes`: what the request keeps of its body and of what was read from it
  SchedulingParameters parameters;  // for the caller to apply to the context
};

// Errors: kInvalid with a sentence naming the tensor or key; kUnsupported for extensions that are
// not offered.
[[nodiscard]] Result<DecodedRequest, Refusal> decode_infer_request(const RequestBody& body,
                                                                   json::JsonParser& parser);

struct EncodedResponse {
  std::string json;
  std::vector<std::span<const std::byte>>
      binary;  // behind the JSON, views into the result's storage
};

// Of the outputs that are to be written as JSON: what encoding them costs.
[[nodiscard]] uint64_t json_tensor_bytes(const InferRequest& request, const InferResult& result);

struct ResponseNames {
  std::string_view model;
  int64_t version = 0;
};

// Error: kInvalid when a BYTES output that is not UTF-8 was asked for as JSON.
[[nodiscard]] Result<EncodedResponse, Refusal> encode_infer_response(const InferRequest& request,
                                                                     const InferResult& result,
                                                                     ResponseNames names);

}  // namespace baton::protocol::oip
