#include "protocol/http1/client.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "protocol/http1/response_writer.h"

namespace baton::protocol::http1 {

void append_request_head(std::string& out, const ClientRequestHead& head) {
  out.append(head.method).append(" ").append(head.target).append(" HTTP/1.1\r\nHost: ");
  out.append(head.host);
  for (const Header& header : head.headers) {
    out.append("\r\n").append(header.name.view()).append(": ").append(header.value);
  }
  if (head.content_length.has_value()) {
    out.append("\r\nContent-Length: ").append(std::to_string(*head.content_length));
  }
  out.append("\r\n\r\n");
}

std::optional<std::string_view> ClientResponse::header(std::string_view lower_name) const {
  for (const HeaderView& entry : headers) {
    if (entry.name == lower_name) return entry.value;
  }
  return std::nullopt;
}

ResponseParser::ResponseParser(const ResponseLimits& limits)
    : MessageParser(limits.head_bytes), limits_(limits) {}

ResponseParser::Event ResponseParser::refuse(std::string message) {
  state_ = State::kRefused;
  error_ = std::move(message);
  return Event::kRefused;
}

ResponseParser::Event ResponseParser::next_head() {
  while (true) {
    switch (scanner_.scan(input_.view())) {
      case HeadScanner::Found::kBareLineFeed:
        return refuse("a line of the response ends without CR");
      case HeadScanner::Found::kNothing:
        if (input_.size() < limits_.head_bytes) return Event::kNeedMore;
        return refuse("the response's head is too large");
      case HeadScanner::Found::kEnd:
        break;
    }
    const Event event = parse_head(scanner_.size());
    scanner_.reset();
    const bool interim = response_.status >= 100 && response_.status < 200;
    if (event == Event::kRefused || !interim) return event;
    const bool proceed = response_.status == 100;
    response_ = ClientResponse();
    if (proceed) return Event::kContinue;
  }
}

ResponseParser::Event ResponseParser::parse_head(size_t bytes) {
  auto storage = std::make_shared_for_overwrite<char[]>(bytes);
  std::memcpy(storage.get(), input_.view().data(), bytes);
  input_.consume(bytes);
  const std::string_view text(storage.get(), bytes);
  const size_t line_end = text.find("\r\n");
  const std::string_view line = text.substr(0, line_end);
  int status = 0;
  const bool versioned = line.starts_with("HTTP/1.1 ") || line.starts_with("HTTP/1.0 ");
  const char* digits = line.data() + 9;
  if (!versioned || line.size() < 12 ||
      std::from_chars(digits, digits + 3, status).ptr != digits + 3 || status < 100 ||
      (line.size() > 12 && line[12] != ' ')) {
    return refuse("the response does not begin with HTTP/1.1 and a status");
  }
  response_.status = status;
  response_.keep_alive = line[7] == '1';
  response_.head_storage = storage;
  const std::span<char> lines(storage.get() + line_end + 2, bytes - line_end - 4);
  if (auto error = parse_fields(lines, limits_.headers, response_.headers)) {
    return refuse(std::move(error->message));
  }
  if (status < 200) return Event::kNeedMore;
  return start_body() ? next_body() : Event::kRefused;
}

// False when the framing is refused.
bool ResponseParser::start_body() {
  for (const HeaderView& header : response_.headers) {
    if (header.name != "connection") continue;
    for (std::string_view list = header.value; !list.empty();) {
      const std::string_view option = take_list_element(list);
      if (equal_ignoring_case(option, "close")) response_.keep_alive = false;
      if (equal_ignoring_case(option, "keep-alive")) response_.keep_alive = true;
    }
  }
  state_ = State::kBody;
  if (!sends_body(response_.status, head_request_)) {
    body_.start_length(0);
    return true;
  }
  const auto length = response_.header("content-length");
  if (const auto encoding = response_.header("transfer-encoding")) {
    if (length.has_value() || !equal_ignoring_case(*encoding, "chunked")) {
      refuse("the response's framing is not understood");
      return false;
    }
    body_.start_chunked({.body_bytes = limits_.body_bytes,
                         .chunks = ~0U,
                         .line_bytes = std::min<size_t>(1024, limits_.head_bytes),
                         .trailer_bytes = limits_.head_bytes,
                         .trailers = limits_.headers});
    return true;
  }
  if (!length.has_value()) {
    response_.keep_alive = false;
    body_.start_until_end(limits_.body_bytes);
    return true;
  }
  const auto bytes = parse_length(*length);
  if (!bytes.has_value() || *bytes > limits_.body_bytes) {
    refuse("the response's Content-Length is no number or over the limit");
    return false;
  }
  body_.start_length(*bytes);
  return true;
}

ResponseParser::Event ResponseParser::next_body() {
  switch (body_.next(input_)) {
    case BodyReader::Event::kNeedMore:
      return Event::kNeedMore;
    case BodyReader::Event::kRefused:
      return refuse(body_.error().message);
    case BodyReader::Event::kComplete:
      break;
  }
  return complete();
}

ResponseParser::Event ResponseParser::complete() {
  BodyReader::Body body = body_.take();
  response_.body = body.bytes;
  response_.body_storage = std::move(body.storage);
  state_ = State::kComplete;
  return Event::kComplete;
}

ResponseParser::Event ResponseParser::end() {
  if (state_ == State::kBody && body_.end()) return complete();
  return refuse("the server closed the connection before the response was complete");
}

ClientResponse ResponseParser::take() {
  ClientResponse response = std::move(response_);
  response_ = ClientResponse();
  head_request_ = false;
  state_ = State::kHead;
  return response;
}

}  // namespace baton::protocol::http1
