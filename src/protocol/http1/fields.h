#pragma once
// Header fields as RFC 9112 writes them, read strictly: what another parser could understand
// differently is refused.

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "protocol/http1/exchange.h"

namespace baton::protocol::http1 {

[[nodiscard]] bool is_token(std::string_view text);  // not empty, RFC 9110 tchar only
[[nodiscard]] bool is_token_char(char c);
[[nodiscard]] bool equal_ignoring_case(std::string_view text, std::string_view lower);
[[nodiscard]] std::string_view trim_blanks(std::string_view text);  // SP and HTAB
// Decimal digits only and no overflow.
[[nodiscard]] std::optional<uint64_t> parse_length(std::string_view text);

// Takes the next element of a comma-separated list off `list`, trimmed; empty elements are returned
// as such.
[[nodiscard]] std::string_view take_list_element(std::string_view& list);

// Appends the fields of `lines` (each line ends with CRLF, the closing empty line is not part of
// it) to `fields`, which then point into `lines`; names are made lower case in place. `limit` is
// the number of fields allowed.
[[nodiscard]] std::optional<CodecError> parse_fields(std::span<char> lines, size_t limit,
                                                     std::vector<HeaderView>& fields);

// Finds the end of a head that arrives in pieces. A line that ends without CR is refused at once.
class HeadScanner {
 public:
  enum class Found { kNothing, kEnd, kBareLineFeed };
  // `bytes` is everything from the head's first byte on; size() then says where the head ends, the
  // empty line included.
  [[nodiscard]] Found scan(std::string_view bytes);
  [[nodiscard]] size_t size() const { return position_; }
  [[nodiscard]] size_t lines() const {
    return lines_;
  }  // complete lines seen, the empty one not counted
  void reset() { *this = HeadScanner(); }

 private:
  size_t position_ = 0;  // bytes looked at
  size_t line_start_ = 0;
  size_t lines_ = 0;
};

}  // namespace baton::protocol::http1
