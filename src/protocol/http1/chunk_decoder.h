#pragma once

#include <cstdint>
#include <string_view>

#include "protocol/http1/exchange.h"
#include "protocol/http1/fields.h"

namespace baton::protocol::http1 {

struct ChunkLimits {
  uint64_t body_bytes = 0;
  uint32_t chunks = 0;
  size_t line_bytes = 0;
  size_t trailer_bytes = 0;
  size_t trailers = 0;
};

// The framing of a chunked body (RFC 9112 section 7.1), without the data, which its user moves.
// Extensions and trailers are checked and dropped.
class ChunkDecoder {
 public:
  enum class Step {
    kNeedMore,
    kData,  // data_left() bytes of data come next
    kDone,  // the message has ended
    kRefused,
  };

  explicit ChunkDecoder(const ChunkLimits& limits) : limits_(limits) {}

  // Reads framing from the front of `input` and says how much of it to drop, whatever the step.
  [[nodiscard]] Step step(std::string_view input, size_t& consumed);
  [[nodiscard]] uint64_t data_left() const { return data_left_; }
  void take_data(uint64_t bytes) { data_left_ -= bytes; }  // that many bytes of data were moved
  [[nodiscard]] const CodecError& error() const { return error_; }

 private:
  enum class State { kSize, kDataEnd, kTrailers };
  Step read_size(std::string_view input, size_t& consumed);
  Step read_data_end(std::string_view input, size_t& consumed);
  Step read_trailers(std::string_view input, size_t& consumed);
  Step open_chunk(std::string_view line);
  Step refuse(int status, std::string message);

  ChunkLimits limits_;
  State state_ = State::kSize;
  uint64_t data_left_ = 0;
  uint64_t total_ = 0;
  uint32_t chunks_ = 0;
  HeadScanner trailer_scanner_;
  CodecError error_;
};

}  // namespace baton::protocol::http1
