#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace baton::protocol::compression {

enum class Encoding : uint8_t { kIdentity, kGzip, kDeflate };

// As in headers: "gzip".
[[nodiscard]] std::string_view encoding_name(Encoding encoding);

// A Content-Encoding, in any case; x-gzip is gzip. Nothing for an unknown one and for a list.
[[nodiscard]] std::optional<Encoding> parse_content_encoding(std::string_view value);

// What an Accept-Encoding prefers: the highest weight, gzip before deflate before identity where
// weights are equal. What it does not name has no weight, but for identity, which is always
// acceptable here: a server may answer so rather than not at all. A weight that does not parse is
// zero.
[[nodiscard]] Encoding choose_encoding(std::string_view accept);

}  // namespace baton::protocol::compression
