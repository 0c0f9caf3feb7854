#pragma once

#include <string>
#include <string_view>

#include "protocol/http1/exchange.h"

namespace baton::protocol::http1 {

struct ResponseFraming {
  bool keep_alive = true;
  bool head_request = false;  // the body is announced and not sent
  bool http_1_0 = false;
};

// Appends status line and headers, the empty line included. Headers that frame are the writer's:
// those of the response are left out, and control characters in values become blanks, so that no
// value can end the head.
void append_response_head(std::string& out, const HttpResponse& response,
                          const ResponseFraming& framing);

// Whether body and parts follow the head.
[[nodiscard]] bool sends_body(int status, bool head_request);
[[nodiscard]] size_t body_size(const HttpResponse& response);
[[nodiscard]] std::string_view reason_phrase(int status);

inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace baton::protocol::http1
