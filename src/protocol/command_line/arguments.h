#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "domain/model.h"

namespace baton::protocol::command_line {

struct Address {
  std::string host;  // numeric
  uint16_t port = 0;
};
// "127.0.0.1:8000", also behind "http://" and with "localhost". Error: a sentence.
[[nodiscard]] Result<Address, std::string> parse_address(const std::string& text);

// "name=1,3,224" as an input and its whole shape. Error: a sentence.
[[nodiscard]] Result<std::pair<std::string, Shape>, std::string> parse_shape(
    const std::string& text);

// Replaces what the metadata leave open: an open first dimension by `rows`, others by 1 or, for an
// input that `shapes` names, all of them as asked. Error: a sentence.
[[nodiscard]] Result<void, std::string> close_shapes(std::vector<TensorSpec>& inputs, int64_t rows,
                                                     const std::vector<std::string>& shapes);

}  // namespace baton::protocol::command_line
