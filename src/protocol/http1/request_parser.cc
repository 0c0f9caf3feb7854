#include "protocol/http1/request_parser.h"

#include <algorithm>
#include <cstring>

namespace baton::protocol::http1 {
namespace {

constexpr size_t kEmptyLinesMax = 4;  // before a request line; RFC 9112 section 2.2 asks for one
constexpr size_t kDirectBytes =
    2048;  // missing body bytes from which reading skips the input buffer
constexpr size_t kDirectReadMax = 256 << 10;  // one read, so that one client does not hold the loop
constexpr size_t kBodyFirstBytes = 1 << 20;   // reserved at once for an announced length
constexpr size_t kChunkedFirstBytes = 4096;
constexpr char kEmptyBody[kBodyPadding] =
    {};  // what an empty body points to, so that its padding is there as well

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
    : limits_(bounded(limits)), input_(limits_.head_bytes) {}

uint64_t RequestParser::data_left() const {
  if (state_ == State::kLength) return *framing_.content_length - body_received();
  if (state_ == State::kChunked) return chunks_->data_left();
  return 0;
}

std::span<char> RequestParser::prepare() {
  direct_ = false;
  const uint64_t left = data_left();
  if (input_.empty() && left >= kDirectBytes && body_ != nullptr) {
    const size_t want = std::min<uint64_t>(left, kDirectReadMax);
    const uint64_t limit = framing_.content_length.value_or(limits_.body_bytes);
    // Without memory the bytes go through the input buffer, where the shortage is answered.
    direct_ = body_->grow(body_->size() + want, limit);
    if (direct_) return body_->room().first(want);
  }
  return input_.room();
}

void RequestParser::commit(size_t bytes) {
  if (direct_) {
    body_->commit(bytes);
    if (state_ == State::kChunked) chunks_->take_data(bytes);
  } else {
    input_.commit(bytes);
  }
}

RequestParser::Event RequestParser::next() {
  switch (state_) {
    case State::kHead:
      return next_head();
    case State::kLength:
      return next_length();
    case State::kChunked:
      return next_chunked();
    case State::kComplete:
      return Event::kComplete;
    case State::kRefused:
      return Event::kRefused;
  }
  return Event::kRefused;
}

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
  if (framing_.chunked) {
    chunks_.emplace(ChunkLimits{.body_bytes = limits_.body_bytes,
                                .chunks = limits_.chunks,
                                .line_bytes = limits_.chunk_line_bytes,
                                .trailer_bytes = limits_.trailer_bytes,
                                .trailers = limits_.headers});
    state_ = State::kChunked;
  } else {
    framing_.content_length = framing_.content_length.value_or(0);
    state_ = State::kLength;
  }
  return Event::kHead;
}

// False when there is no memory.
bool RequestParser::move_to_body(uint64_t left) {
  const size_t bytes = std::min<uint64_t>(input_.size(), left);
  if (body_ == nullptr) {
    body_ = std::make_shared<BodyBuffer>();
    const size_t first = framing_.chunked
                             ? kChunkedFirstBytes
                             : std::min<uint64_t>(*framing_.content_length, kBodyFirstBytes);
    if (!body_->reserve(std::max(first, bytes))) return false;
  }
  const uint64_t limit = framing_.content_length.value_or(limits_.body_bytes);
  if (!body_->grow(body_->size() + bytes, limit)) return false;
  body_->append(input_.view().substr(0, bytes));
  input_.consume(bytes);
  return true;
}

RequestParser::Event RequestParser::next_length() {
  if (data_left() > 0 && !move_to_body(data_left())) {
    return refuse({503, "There is no memory for the request body at the moment."});
  }
  return data_left() > 0 ? Event::kNeedMore : complete();
}

RequestParser::Event RequestParser::next_chunked() {
  while (true) {
    size_t consumed = 0;
    const ChunkDecoder::Step step = chunks_->step(input_.view(), consumed);
    input_.consume(consumed);
    if (step == ChunkDecoder::Step::kRefused) return refuse(chunks_->error());
    if (step == ChunkDecoder::Step::kDone) return complete();
    if (step == ChunkDecoder::Step::kNeedMore) {
      if (consumed == 0) return Event::kNeedMore;
      continue;
    }
    const uint64_t before = body_received();
    if (!move_to_body(chunks_->data_left())) {
      return refuse({503, "There is no memory for the request body at the moment."});
    }
    chunks_->take_data(body_received() - before);
    if (chunks_->data_left() > 0) return Event::kNeedMore;
  }
}

RequestParser::Event RequestParser::complete() {
  if (body_ != nullptr) {
    request_.body = body_->finish();
    request_.body_storage = std::move(body_);
    body_ = nullptr;
  } else {
    request_.body = {kEmptyBody, 0};
  }
  state_ = State::kComplete;
  return Event::kComplete;
}

HttpRequest RequestParser::take() {
  HttpRequest request = std::move(request_);
  request_ = HttpRequest();
  framing_ = RequestFraming();
  chunks_.reset();
  scanner_.reset();
  empty_lines_ = 0;
  state_ = State::kHead;
  return request;
}

}  // namespace baton::protocol::http1
