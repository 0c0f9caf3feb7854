#pragma once
// Inputs that a person writes as JSON, for `baton infer`.

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "domain/model.h"
#include "domain/request.h"
#include "protocol/json/reader.h"

namespace baton::protocol::oip {

// Whether the text is a whole request of the protocol: an object whose "inputs" are objects. Error:
// a sentence, where it is no JSON object.
[[nodiscard]] Result<bool, std::string> is_infer_request(std::string_view text,
                                                         json::JsonParser& parser);

// Appends to `request` what {"input": nested arrays, ...} says: types are the specifications',
// shapes those of the nesting. Error: a sentence.
[[nodiscard]] Result<void, std::string> read_named_arrays(std::string_view text,
                                                          std::span<const TensorSpec> specs,
                                                          InferRequest& request,
                                                          json::JsonParser& parser);

}  // namespace baton::protocol::oip
