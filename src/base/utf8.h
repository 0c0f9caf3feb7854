#pragma once

#include <cstddef>
#include <string_view>

namespace baton {

// Length of the valid UTF-8 sequence at the start of a non-empty `text` (1 to 4); 0 when it is not
// valid: overlong forms, surrogates and values beyond U+10FFFF are not.
[[nodiscard]] size_t utf8_sequence_length(std::string_view text);
[[nodiscard]] bool is_valid_utf8(std::string_view text);

}  // namespace baton
