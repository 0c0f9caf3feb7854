#include "protocol/http1/body_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "protocol/http1/exchange.h"

namespace baton::protocol::http1 {

BodyBuffer::~BodyBuffer() {
  std::free(data_);
}

bool BodyBuffer::reserve(size_t capacity) {
  if (data_ != nullptr && capacity <= capacity_) return true;
  // realloc moves the pages of large blocks instead of copying them.
  void* data = std::realloc(data_, capacity + kBodyPadding);
  if (data == nullptr) return false;
  data_ = static_cast<char*>(data);
  capacity_ = capacity;
  return true;
}

bool BodyBuffer::grow(size_t at_least, size_t limit) {
  if (data_ != nullptr && at_least <= capacity_) return true;
  return reserve(std::max(at_least, std::min(capacity_ * 2, limit)));
}

void BodyBuffer::append(std::string_view bytes) {
  BATON_CHECK(bytes.size() <= capacity_ - size_);
  if (bytes.empty()) return;
  std::memcpy(data_ + size_, bytes.data(), bytes.size());
  size_ += bytes.size();
}

std::string_view BodyBuffer::finish() {
  if (data_ == nullptr) return {};
  std::memset(data_ + size_, 0, kBodyPadding);
  return {data_, size_};
}

}  // namespace baton::protocol::http1
