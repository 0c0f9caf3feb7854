#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "protocol/http1/body_buffer.h"
#include "protocol/http1/chunk_decoder.h"
#include "protocol/http1/exchange.h"
#include "protocol/http1/input_buffer.h"

namespace baton::protocol::http1 {

// Collects the body of one message after the other, whichever way it is framed. Long stretches are
// read to where they stay, past the input buffer.
class BodyReader {
 public:
  enum class Event { kNeedMore, kComplete, kRefused };
  struct Body {
    std::string_view bytes;  // never null; kBodyPadding zero bytes behind it
    std::shared_ptr<const void> storage;
  };

  void start_length(uint64_t length);
  void start_chunked(const ChunkLimits& limits);
  void start_until_end(uint64_t limit);  // of input: the end() of a response without a length

  // Room in the body itself, or empty when bytes are to go through `input`.
  [[nodiscard]] std::span<char> prepare(const InputBuffer& input);
  void commit(size_t bytes);  // to prepare()'s room
  [[nodiscard]] Event next(InputBuffer& input);
  // The input has ended: whether that completes the body.
  [[nodiscard]] bool end() const { return framing_ == Framing::kUntilEnd; }
  [[nodiscard]] Body take();

  [[nodiscard]] uint64_t received() const { return buffer_ == nullptr ? 0 : buffer_->size(); }
  [[nodiscard]] const CodecError& error() const { return error_; }

 private:
  enum class Framing { kLength, kChunked, kUntilEnd };
  [[nodiscard]] uint64_t left() const;
  bool move(InputBuffer& input);
  Event next_chunked(InputBuffer& input);
  Event refuse(CodecError error);

  Framing framing_ = Framing::kLength;
  uint64_t limit_ = 0;  // the length where that is known
  std::optional<ChunkDecoder> chunks_;
  std::shared_ptr<BodyBuffer> buffer_;
  CodecError error_;
};

}  // namespace baton::protocol::http1
