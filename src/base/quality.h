#pragma once

#include <string_view>

namespace baton {

// A weight of HTTP's Accept headers (RFC 9110, 12.4.2) in thousandths: "0.5" is 500, "1.000" 1000.
// 0 for what is no weight.
[[nodiscard]] int quality_thousandths(std::string_view text);

}  // namespace baton
