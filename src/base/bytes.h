#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace baton {

// The same bytes as characters.
[[nodiscard]] inline std::string_view as_chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace baton
