#pragma once
// The header of a .npy file: a literal of a Python dict with three keys.

#include <string>
#include <string_view>

#include "base/result.h"
#include "domain/tensor.h"

namespace baton::protocol::npy {

struct Header {
  std::string descr;  // "<f4"
  bool fortran_order = false;
  Shape shape;
};

// Error: a sentence.
[[nodiscard]] Result<Header, std::string> parse_header(std::string_view text);

}  // namespace baton::protocol::npy
