#pragma once
// The head of a request: request line, headers and what they say about framing, read strictly.

#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "protocol/http1/exchange.h"

namespace baton::protocol::http1 {

// What one request may cost before the handler has seen it.
struct RequestLimits {
  size_t head_bytes =
      16 * 1024;  // request line and headers; also the most that is kept of pipelined requests
  size_t headers = 100;
  size_t target_bytes = 8 * 1024;
  uint64_t body_bytes = 64ULL << 20;  // after decoding of chunks
  uint32_t chunks = 65'536;
  size_t chunk_line_bytes = 1024;  // size and extensions of one chunk
  size_t trailer_bytes = 8 * 1024;
};

struct RequestFraming {
  std::optional<uint64_t> content_length;  // absent: chunked, or no body
  bool chunked = false;
  bool keep_alive = true;
  bool expects_continue = false;
  bool http_1_0 = false;
};

// Parses a complete head, its closing empty line included. Fills method, target and headers of
// `request`, which point into `head`; header names are made lower case in place. An absolute target
// is cut down to its path.
[[nodiscard]] Result<RequestFraming, CodecError> parse_request_head(std::span<char> head,
                                                                    const RequestLimits& limits,
                                                                    HttpRequest& request);

}  // namespace baton::protocol::http1
