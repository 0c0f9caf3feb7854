#include "protocol/http1/chunk_decoder.h"

#include <algorithm>

namespace baton::protocol::http1 {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// 15 digits cannot overflow 64 bits; longer sizes are refused as malformed.
constexpr size_t kSizeDigitsMax = 15;

bool is_text(char c) {
  return (static_cast<uint8_t>(c) >= 0x20 && c != 0x7f) || c == '\t';
}

void skip_blanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
}

// True when a token was taken off.
bool take_token(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_token_char);
  const auto size = static_cast<size_t>(end - text.begin());
  text.remove_prefix(size);
  return size > 0;
}

// True when a quoted string was taken off that also ends.
bool take_quoted(std::string_view& text) {
  for (size_t i = 1; i < text.size() && is_text(text[i]); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return true;
    }
    if (text[i] == '\\' && (++i == text.size() || !is_text(text[i]))) return false;
  }
  return false;
}

// RFC 9112 section 7.1.1. Checked though it is dropped: a quote that does not end makes some
// parsers read on past the line.
bool are_extensions(std::string_view text) {
  while (!text.empty()) {
    if (text.front() != ';') return false;
    text.remove_prefix(1);
    skip_blanks(text);
    if (!take_token(text)) return false;
    skip_blanks(text);
    if (!text.starts_with('=')) continue;
    text.remove_prefix(1);
    skip_blanks(text);
    if (!(text.starts_with('"') ? take_quoted(text) : take_token(text))) return false;
    skip_blanks(text);
  }
  return true;
}

}  // namespace

ChunkDecoder::Step ChunkDecoder::refuse(int status, std::string message) {
  error_ = CodecError{status, std::move(message)};
  return Step::kRefused;
}

ChunkDecoder::Step ChunkDecoder::step(std::string_view input, size_t& consumed) {
  consumed = 0;
  if (data_left_ > 0) return Step::kData;
  switch (state_) {
    case State::kSize:
      return read_size(input, consumed);
    case State::kDataEnd:
      return read_data_end(input, consumed);
    case State::kTrailers:
      return read_trailers(input, consumed);
  }
  return Step::kRefused;
}

ChunkDecoder::Step ChunkDecoder::read_size(std::string_view input, size_t& consumed) {
  const size_t feed = input.substr(0, limits_.line_bytes).find('\n');
  if (feed == std::string_view::npos) {
    if (input.size() < limits_.line_bytes) return Step::kNeedMore;
    return refuse(400, "The size line of a chunk is longer than " +
                           std::to_string(limits_.line_bytes) + " bytes.");
  }
  if (feed == 0 || input[feed - 1] != '\r') {
    return refuse(400, "The size line of a chunk must end with CR LF.");
  }
  consumed = feed + 1;
  return open_chunk(input.substr(0, feed - 1));
}

ChunkDecoder::Step ChunkDecoder::open_chunk(std::string_view line) {
  size_t digits = 0;
  uint64_t size = 0;
  while (digits < line.size() && hex_digit(line[digits]) >= 0) {
    if (digits == kSizeDigitsMax) return refuse(400, "The size of a chunk has too many digits.");
    size = size * 16 + static_cast<uint64_t>(hex_digit(line[digits]));
    ++digits;
  }
  if (digits == 0 || !are_extensions(line.substr(digits))) {
    return refuse(
        400, "A chunk must begin with its size in hexadecimal digits, then extensions if any.");
  }
  if (size == 0) {
    state_ = State::kTrailers;
    return Step::kNeedMore;
  }
  if (++chunks_ > limits_.chunks) {
    return refuse(413, "The request body has more than " + std::to_string(limits_.chunks) +
                           " chunks; send larger ones.");
  }
  if (size > limits_.body_bytes - total_) {
    return refuse(413, "The request body is larger than the limit of " +
                           std::to_string(limits_.body_bytes) + " bytes.");
  }
  total_ += size;
  data_left_ = size;
  state_ = State::kDataEnd;
  return Step::kData;
}

ChunkDecoder::Step ChunkDecoder::read_data_end(std::string_view input, size_t& consumed) {
  if (!std::string_view("\r\n").starts_with(input.substr(0, 2))) {
    return refuse(400, "The data of a chunk must be followed by CR LF.");
  }
  if (input.size() < 2) return Step::kNeedMore;
  consumed = 2;
  state_ = State::kSize;
  return Step::kNeedMore;
}

ChunkDecoder::Step ChunkDecoder::read_trailers(std::string_view input, size_t& consumed) {
  const std::string_view seen = input.substr(0, limits_.trailer_bytes);
  const HeadScanner::Found found = trailer_scanner_.scan(seen);
  if (found == HeadScanner::Found::kBareLineFeed) return refuse(400, "Lines must end with CR LF.");
  if (found == HeadScanner::Found::kNothing) {
    if (input.size() < limits_.trailer_bytes) return Step::kNeedMore;
    return refuse(
        431, "The trailers are longer than " + std::to_string(limits_.trailer_bytes) + " bytes.");
  }
  consumed = trailer_scanner_.size();
  std::string lines(input.substr(0, consumed - 2));
  std::vector<HeaderView> dropped;
  if (auto error = parse_fields(lines, limits_.trailers, dropped)) {
    error_ = *std::move(error);
    return Step::kRefused;
  }
  for (const HeaderView& trailer : dropped) {
    // RFC 9110 section 6.5.1: some parsers let them frame the message.
    if (trailer.name == "content-length" || trailer.name == "transfer-encoding" ||
        trailer.name == "host" || trailer.name == "connection") {
      return refuse(400, "The header " + std::string(trailer.name) + " must not be a trailer.");
    }
  }
  return Step::kDone;
}

}  // namespace baton::protocol::http1
