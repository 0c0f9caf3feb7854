#pragma once

#include <cstdint>
#include <string_view>

#include "base/static_text.h"

namespace baton::protocol::exposition {

enum class Format : uint8_t { kText, kOpenMetrics };

// Of the Content-Type header.
[[nodiscard]] StaticText content_type(Format format);

// What an Accept header asks for: OpenMetrics 1.0.0 where it is named and text is not preferred.
[[nodiscard]] Format choose_format(std::string_view accept);

}  // namespace baton::protocol::exposition
