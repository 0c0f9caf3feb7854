#include "protocol/http1/input_buffer.h"

#include <algorithm>
#include <cstring>

namespace baton::protocol::http1 {
namespace {

constexpr size_t kFirstBlockBytes = 2048;  // holds a usual head and a small body

}  // namespace

std::span<char> InputBuffer::room() {
  if (begin_ > 0 && end_ == capacity_) {
    std::memmove(data_.get(), data_.get() + begin_, size());
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == capacity_ && capacity_ < limit_) {
    const size_t capacity = std::min(limit_, std::max(kFirstBlockBytes, capacity_ * 2));
    auto data = std::make_unique_for_overwrite<char[]>(capacity);
    if (end_ > 0) std::memcpy(data.get(), data_.get(), end_);
    data_ = std::move(data);
    capacity_ = capacity;
  }
  return {data_.get() + end_, capacity_ - end_};
}

void InputBuffer::consume(size_t bytes) {
  begin_ += bytes;
  if (begin_ == end_) begin_ = end_ = 0;
}

void InputBuffer::shrink() {
  if (!empty() || capacity_ <= kFirstBlockBytes) return;
  data_.reset();
  capacity_ = 0;
}

}  // namespace baton::protocol::http1
