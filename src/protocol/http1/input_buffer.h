#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace baton::protocol::http1 {

// Bytes that were read and not consumed yet: one contiguous window in a buffer that grows up to a
// limit.
class InputBuffer {
 public:
  explicit InputBuffer(size_t limit) : limit_(limit) {}

  [[nodiscard]] bool empty() const { return begin_ == end_; }
  [[nodiscard]] size_t size() const { return end_ - begin_; }
  [[nodiscard]] std::string_view view() const { return {data_.get() + begin_, size()}; }
  // Room for more bytes; empty when the limit is reached. Moves the window, so views of it end
  // here.
  [[nodiscard]] std::span<char> room();
  void commit(size_t bytes) { end_ += bytes; }
  void consume(size_t bytes);
  // Gives memory beyond the first block back; only when empty.
  void shrink();

 private:
  size_t limit_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::unique_ptr<char[]> data_;
};

}  // namespace baton::protocol::http1
