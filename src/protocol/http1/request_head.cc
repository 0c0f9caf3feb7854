#include "protocol/http1/request_head.h"

#include <algorithm>

#include "protocol/http1/fields.h"

namespace baton::protocol::http1 {
namespace {

constexpr size_t kMethodBytesMax = 32;

auto refuse(int status, std::string message) {
  return fail(CodecError{status, std::move(message)});
}

using Done = Result<void, CodecError>;

// RFC 9112 section 3.2: origin form, absolute form cut down to its path, or "*" for OPTIONS.
Done set_target(std::string_view target, HttpRequest& request) {
  const bool printable =
      std::all_of(target.begin(), target.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (target.empty() || !printable || target.find('#') != std::string_view::npos) {
    return refuse(400, "The request target is empty or holds a character that must be escaped.");
  }
  if (request.method == "CONNECT") return refuse(501, "The method CONNECT is not supported.");
  if (target.front() == '/' || (target == "*" && request.method == "OPTIONS")) {
    request.target = target;
    return {};
  }
  for (std::string_view scheme : {"http://", "https://"}) {
    if (!equal_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    const std::string_view rest = target.substr(scheme.size());
    const size_t path = rest.find_first_of("/?");
    if (path == 0 || rest.empty()) return refuse(400, "The request target has no host.");
    request.target = path == std::string_view::npos ? std::string_view("/") : rest.substr(path);
    // "http://host?query" has no path to begin the target with.
    if (request.target.front() == '?') return refuse(400, "The request target has no path.");
    return {};
  }
  return refuse(400, "The request target must be a path that begins with '/'.");
}

Result<bool, CodecError> is_http_1_0(std::string_view version) {
  if (version == "HTTP/1.1") return false;
  if (version == "HTTP/1.0") return true;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (version.size() == 8 && version.starts_with("HTTP/") && digit(version[5]) &&
      version[6] == '.' && digit(version[7])) {
    return refuse(505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.");
  }
  return refuse(400, "The request line must be a method, a target and HTTP/1.1.");
}

Result<bool, CodecError> parse_request_line(std::string_view line, const RequestLimits& limits,
                                            HttpRequest& request) {
  const size_t method_end = line.find(' ');
  const size_t target_end = line.rfind(' ');
  if (method_end == std::string_view::npos || target_end == method_end) {
    return refuse(400, "The request line must be a method, a target and HTTP/1.1.");
  }
  request.method = line.substr(0, method_end);
  if (!is_token(request.method) || request.method.size() > kMethodBytesMax) {
    return refuse(400, "The request does not begin with a method.");
  }
  const std::string_view target = line.substr(method_end + 1, target_end - method_end - 1);
  if (target.size() > limits.target_bytes) {
    return refuse(414, "The request target is longer than " + std::to_string(limits.target_bytes) +
                           " bytes.");
  }
  BATON_ASSIGN(const bool http_1_0, is_http_1_0(line.substr(target_end + 1)));
  BATON_TRY(set_target(target, request));
  return http_1_0;
}

// What the headers that frame a message said, while they are walked.
struct FramingFields {
  std::optional<std::string_view> content_length;
  std::optional<std::string_view> transfer_encoding;
  std::optional<std::string_view> host;
  std::optional<std::string_view> expect;
  bool close = false;
  bool keep_alive = false;
};

Done set_once(std::optional<std::string_view>& field, const HeaderView& header) {
  if (field.has_value()) {
    return refuse(400, "The header " + std::string(header.name) + " appears more than once.");
  }
  field = header.value;
  return {};
}

void read_connection(std::string_view list, FramingFields& fields) {
  while (!list.empty()) {
    const std::string_view option = take_list_element(list);
    fields.close |= equal_ignoring_case(option, "close");
    fields.keep_alive |= equal_ignoring_case(option, "keep-alive");
  }
}

Done collect(const std::vector<HeaderView>& headers, FramingFields& fields) {
  for (const HeaderView& header : headers) {
    switch (header.name.size()) {  // most names are none of these
      case 4:
        if (header.name == "host") BATON_TRY(set_once(fields.host, header));
        break;
      case 6:
        if (header.name == "expect") BATON_TRY(set_once(fields.expect, header));
        break;
      case 10:
        if (header.name == "connection") read_connection(header.value, fields);
        break;
      case 14:
        if (header.name == "content-length") BATON_TRY(set_once(fields.content_length, header));
        break;
      case 17:
        if (header.name == "transfer-encoding") {
          BATON_TRY(set_once(fields.transfer_encoding, header));
        }
        break;
      default:
        break;
    }
  }
  return {};
}

Done check_transfer_encoding(std::string_view value) {
  std::string_view last;
  size_t codings = 0;
  for (std::string_view list = value; !list.empty();) {
    last = take_list_element(list);
    ++codings;
    if (equal_ignoring_case(last, "chunked") && !list.empty()) {
      return refuse(400, "In Transfer-Encoding, chunked must come last and once.");
    }
  }
  if (!equal_ignoring_case(last, "chunked")) {
    return refuse(400, "Transfer-Encoding must end with chunked: the length is unknown else.");
  }
  if (codings > 1) return refuse(501, "The only Transfer-Encoding supported is chunked.");
  return {};
}

Done set_body(const FramingFields& fields, const RequestLimits& limits, RequestFraming& framing) {
  if (fields.transfer_encoding.has_value()) {
    if (fields.content_length.has_value()) {
      return refuse(400, "Content-Length and Transfer-Encoding must not be sent together.");
    }
    if (framing.http_1_0) return refuse(400, "HTTP/1.0 has no Transfer-Encoding.");
    BATON_TRY(check_transfer_encoding(*fields.transfer_encoding));
    framing.chunked = true;
    return {};
  }
  if (!fields.content_length.has_value()) return {};
  framing.content_length = parse_length(*fields.content_length);
  if (!framing.content_length.has_value()) {
    return refuse(400, "Content-Length must be one decimal number.");
  }
  if (*framing.content_length > limits.body_bytes) {
    return refuse(413, "The request body has " + std::to_string(*framing.content_length) +
                           " bytes; the limit is " + std::to_string(limits.body_bytes) + ".");
  }
  return {};
}

Done check_host(const FramingFields& fields, bool http_1_0) {
  if (!fields.host.has_value()) {
    if (http_1_0) return {};
    return refuse(400, "The header Host is missing.");
  }
  const bool plain = std::all_of(fields.host->begin(), fields.host->end(), [](char c) {
    return c > 0x20 && c < 0x7f && std::string_view(",/@?#\\").find(c) == std::string_view::npos;
  });
  if (!plain) return refuse(400, "The header Host is not a host name with an optional port.");
  return {};
}

}  // namespace

Result<RequestFraming, CodecError> parse_request_head(std::span<char> head,
                                                      const RequestLimits& limits,
                                                      HttpRequest& request) {
  const std::string_view text(head.data(), head.size());
  const size_t line_end = text.find("\r\n");
  if (line_end == std::string_view::npos || !text.ends_with("\r\n\r\n")) {
    return refuse(400, "Lines must end with CR LF.");
  }
  RequestFraming framing;
  BATON_ASSIGN(framing.http_1_0, parse_request_line(text.substr(0, line_end), limits, request));
  const std::span<char> lines = head.subspan(line_end + 2, head.size() - line_end - 4);
  if (auto error = parse_fields(lines, limits.headers, request.headers)) return fail(*error);
  FramingFields fields;
  BATON_TRY(collect(request.headers, fields));
  BATON_TRY(check_host(fields, framing.http_1_0));
  BATON_TRY(set_body(fields, limits, framing));
  framing.keep_alive = framing.http_1_0 ? fields.keep_alive && !fields.close : !fields.close;
  if (fields.expect.has_value() && !framing.http_1_0) {
    if (!equal_ignoring_case(*fields.expect, "100-continue")) {
      return refuse(417, "The only expectation supported is 100-continue.");
    }
    framing.expects_continue = true;
  }
  return framing;
}

}  // namespace baton::protocol::http1
