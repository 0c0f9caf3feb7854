#pragma once

#include <string_view>

namespace baton {

// The one place for the version.
inline constexpr std::string_view kBatonVersion = "0.1.0";

}  // namespace baton
