#pragma once
// A server's answer to an inference request, for `baton infer`.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "domain/request.h"
#include "protocol/json/reader.h"

namespace baton::protocol::oip {

struct InferAnswer {
  std::string model;
  std::string version;
  InferResult result;  // of JSON data owned; of binary data views into the body
};

// `header_length`: the value of Inference-Header-Content-Length, if there is one. Error: a
// sentence.
[[nodiscard]] Result<InferAnswer, std::string> parse_infer_answer(
    std::string_view body, std::optional<std::string_view> header_length, json::JsonParser& parser);

// The JSON of an answer, without the binary tensors behind it. Error: a sentence.
[[nodiscard]] Result<std::string_view, std::string> answer_json(
    std::string_view body, std::optional<std::string_view> header_length);

// What {"error": "..."} says; the text itself where it is something else.
[[nodiscard]] std::string error_text(std::string_view body, json::JsonParser& parser);

// For people: the first `most` elements between commas, with "..." where there are more. Strings
// are quoted and escaped, and long ones cut.
[[nodiscard]] std::string elements_text(const Tensor& tensor, uint64_t most);

// A name that a server made up: as it is, or quoted and escaped where that could harm a terminal.
[[nodiscard]] std::string printable(std::string_view name);

}  // namespace baton::protocol::oip
