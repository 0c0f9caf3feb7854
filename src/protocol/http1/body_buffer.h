#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace baton::protocol::http1 {

// The growing bytes of one message body, with zero padding behind them once finished. Memory
// follows what has arrived, not what was announced. Not thread-safe while it grows; immutable after
// finish().
class BodyBuffer {
 public:
  BodyBuffer() = default;
  BodyBuffer(const BodyBuffer&) = delete;
  BodyBuffer& operator=(const BodyBuffer&) = delete;
  ~BodyBuffer();

  // Room for `capacity` bytes and the padding behind them. False when the memory is not to be had.
  [[nodiscard]] bool reserve(size_t capacity);
  // As reserve(), and grows at least twofold, but never beyond `limit` unless asked for.
  [[nodiscard]] bool grow(size_t at_least, size_t limit);

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] size_t capacity() const { return capacity_; }
  // The room behind the bytes; fill it from the front, then commit().
  [[nodiscard]] std::span<char> room() { return {data_ + size_, capacity_ - size_}; }
  void commit(size_t bytes) { size_ += bytes; }
  void append(std::string_view bytes);  // the room is there
  std::string_view finish();

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;  // without the padding
};

}  // namespace baton::protocol::http1
