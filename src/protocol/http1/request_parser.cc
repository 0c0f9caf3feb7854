#include "protocol/http1/request_parser.h"

#include <algorithm>
#include <cstring>

namespace baton::protocol::http1 {
namespace {

constexpr size_t kEmptyLinesMax = 4;  // before a request line; RFC 9112 section 2.2 asks for one

RequestLimits bounded(RequestLimits limits) {
  limits.head_bytes = std::max<size_t>(limits.head_bytes, 64);
  limits.chunk_line_bytes = std::min(limits.chunk_line_bytes, limits.head_bytes);
  limits.trailer_bytes = std::min(limits.trailer_bytes, limits.head_bytes);
  return limits;
}

CodecError first_byte_error(char first) {
  constexpr char kTlsHandshake = 0x16;
  if (first == kTlsHandshake) return {400, "This port speaks plain HTTP, not TLS."};
  return {400, "The request does not begin with a method."};
}

}  // namespace

RequestParser::RequestParser(const RequestLimits& limits)
    : MessageParser(bounded(limits).head_bytes), limits_(bounded(limits)) {}

RequestParser::Event RequestParser::refuse(CodecError error) {
  state_ = State::kRefused;
  error_ = std::move(error);
  return Event::kRefused;
}

// True when the first byte of a head is there.
bool RequestParser::skip_empty_lines() {
  while (input_.view().starts_with("\r\n") && empty_lines_ < kEmptyLinesMax) {
    input_.consume(2);
    ++empty_lines_;
  }
  return !input_.empty() && input_.view() != "\r";
}

RequestParser::Event RequestParser::next_head() {
  if (scanner_.size() == 0) {
    if (!skip_empty_lines()) return Event::kNeedMore;
    const char first = input_.view().front();
    if (!is_token_char(first)) return refuse(first_byte_error(first));
  }
  switch (scanner_.scan(input_.view())) {
    case HeadScanner::Found::kEnd:
      return parse_head(scanner_.size());
    case HeadScanner::Found::kBareLineFeed:
      return refuse({400, "Lines must end with CR LF."});
    case HeadScanner::Found::kNothing:
      break;
  }
  if (input_.size() < limits_.head_bytes) return Event::kNeedMore;
  if (scanner_.lines() == 0) return refuse({414, "The request line is too long."});
  return refuse({431, "The headers are larger than the limit of " +
                          std::to_string(limits_.head_bytes) + " bytes."});
}

RequestParser::Event RequestParser::parse_head(size_t bytes) {
  auto storage = std::make_shared_for_overwrite<char[]>(bytes);
  std::memcpy(storage.get(), input_.view().data(), bytes);
  input_.consume(bytes);
  request_.headers.reserve(scanner_.lines());
  auto framing = parse_request_head({storage.get(), bytes}, limits_, request_);
  request_.head_storage = std::move(storage);
  if (!framing.has_value()) return refuse(std::move(framing).error());
  framing_ = *framing;
  state_ = State::kBody;
  if (framing_.chunked) {
    body_.start_chunked({.body_bytes = limits_.body_bytes,
                         .chunks = limits_.chunks,
                         .line_bytes = limits_.chunk_line_bytes,
                         .trailer_bytes = limits_.trailer_bytes,
                         .trailers = limits_.headers});
  } else {
    framing_.content_length = framing_.content_length.value_or(0);
    body_.start_length(*framing_.content_length);
  }
  return Event::kHead;
}

RequestParser::Event RequestParser::next_body() {
  switch (body_.next(input_)) {
    case BodyReader::Event::kNeedMore:
      return Event::kNeedMore;
    case BodyReader::Event::kRefused:
      return refuse(body_.error());
    case BodyReader::Event::kComplete:
      break;
  }
  BodyReader::Body body = body_.take();
  request_.body = body.bytes;
  request_.body_storage = std::move(body.storage);
  state_ = State::kComplete;
  return Event::kComplete;
}

void RequestParser::abandon() {
  state_ = State::kRefused;
  request_ = HttpRequest();
  (void)body_.take();
  input_ = InputBuffer(limits_.head_bytes);
}

HttpRequest RequestParser::take() {
  HttpRequest request = std::move(request_);
  request_ = HttpRequest();
  framing_ = RequestFraming();
  scanner_.reset();
  empty_lines_ = 0;
  state_ = State::kHead;
  return request;
}

}  // namespace baton::protocol::http1
