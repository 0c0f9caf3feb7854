#include "protocol/http1/response_writer.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "protocol/http1/fields.h"

namespace baton::protocol::http1 {
namespace {

struct Phrase {
  int status;
  std::string_view text;
};
constexpr std::array kPhrases = {
    Phrase{200, "OK"},
    Phrase{201, "Created"},
    Phrase{202, "Accepted"},
    Phrase{204, "No Content"},
    Phrase{304, "Not Modified"},
    Phrase{400, "Bad Request"},
    Phrase{401, "Unauthorized"},
    Phrase{403, "Forbidden"},
    Phrase{404, "Not Found"},
    Phrase{405, "Method Not Allowed"},
    Phrase{408, "Request Timeout"},
    Phrase{409, "Conflict"},
    Phrase{413, "Content Too Large"},
    Phrase{414, "URI Too Long"},
    Phrase{415, "Unsupported Media Type"},
    Phrase{417, "Expectation Failed"},
    Phrase{422, "Unprocessable Content"},
    Phrase{429, "Too Many Requests"},
    Phrase{431, "Request Header Fields Too Large"},
    Phrase{499, "Client Closed Request"},
    Phrase{500, "Internal Server Error"},
    Phrase{501, "Not Implemented"},
    Phrase{502, "Bad Gateway"},
    Phrase{503, "Service Unavailable"},
    Phrase{504, "Gateway Timeout"},
    Phrase{505, "HTTP Version Not Supported"},
};

void append_number(std::string& out, uint64_t value) {
  std::array<char, 20> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out.append(digits.data(), static_cast<size_t>(end - digits.data()));
}

bool is_control(char c) {
  const auto byte = static_cast<uint8_t>(c);
  return byte < 0x20 || byte == 0x7f;
}

// Control characters leave as blanks: none of them ends a line early.
void append_value(std::string& out, std::string_view value) {
  const size_t at = out.size();
  out += value;
  std::replace_if(out.begin() + static_cast<std::ptrdiff_t>(at), out.end(), is_control, ' ');
}

bool frames(std::string_view name) {
  return equal_ignoring_case(name, "content-length") || equal_ignoring_case(name, "connection") ||
         equal_ignoring_case(name, "transfer-encoding");
}

}  // namespace

std::string_view reason_phrase(int status) {
  for (const Phrase& phrase : kPhrases) {
    if (phrase.status == status) return phrase.text;
  }
  return "Unknown";
}

bool sends_body(int status, bool head_request) {
  return !head_request && status >= 200 && status != 204 && status != 304;
}

size_t body_size(const HttpResponse& response) {
  size_t bytes = response.body.size();
  for (const auto& part : response.parts) bytes += part.size();
  return bytes;
}

void append_response_head(std::string& out, const HttpResponse& response,
                          const ResponseFraming& framing) {
  out += "HTTP/1.1 ";
  append_number(out, static_cast<uint64_t>(response.status));
  out += ' ';
  out += reason_phrase(response.status);
  if (!response.content_type.empty()) {
    out += "\r\nContent-Type: ";
    append_value(out, response.content_type);
  }
  for (const Header& header : response.headers) {
    if (!is_token(header.name) || frames(header.name)) continue;
    out += "\r\n";
    out += header.name.view();
    out += ": ";
    append_value(out, header.value);
  }
  if (sends_body(response.status, false)) {
    out += "\r\nContent-Length: ";
    append_number(out, body_size(response));
  }
  if (!framing.keep_alive) {
    out += "\r\nConnection: close";
  } else if (framing.http_1_0) {
    out += "\r\nConnection: keep-alive";
  }
  out += "\r\n\r\n";
}

}  // namespace baton::protocol::http1
