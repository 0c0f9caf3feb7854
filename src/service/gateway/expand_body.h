#pragma once

#include <cstdint>

#include "base/result.h"
#include "domain/end_reason.h"
#include "protocol/compression/encoding.h"
#include "protocol/http1/exchange.h"

namespace baton::service {

// Of the Content-Encoding. Error: kUnsupported, which HTTP calls 415.
[[nodiscard]] Result<protocol::compression::Encoding, Refusal> content_encoding(
    const protocol::http1::HttpRequest& request);

// Puts the expanded body in place of the one that came. Takes at most four times the bytes that
// came before it knows that the result is within `limit`. 1 to 6 ns a byte made. Errors: kInvalid
// for what is no such stream, kTooLarge beyond the limit.
[[nodiscard]] Result<void, Refusal> expand_body(protocol::http1::HttpRequest& request,
                                                protocol::compression::Encoding encoding,
                                                uint64_t limit);

}  // namespace baton::service
