#include "protocol/grpc_wire/frame_filter.h"

#include <algorithm>

namespace baton::protocol::grpc_wire {
namespace {

constexpr uint8_t kHeaders = 1;
constexpr uint8_t kRstStream = 3;

uint32_t number(std::span<const char> bytes) {
  uint32_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

}  // namespace

bool FrameFilter::is_dropped(std::span<const char> head) {
  const auto type = static_cast<uint8_t>(head[3]);
  const uint32_t stream = number(head.subspan(5, 4)) & 0x7fffffff;
  left_ = number(head.first(3));
  if (type == kHeaders) last_begun_ = std::max(last_begun_, stream);
  return type == kRstStream && stream % 2 == 1 && stream > last_begun_;
}

bool FrameFilter::feed(std::span<const char> bytes, FunctionRef<bool(std::span<const char>)> pass) {
  size_t from = 0;  // what is to be passed begins here
  size_t at = 0;
  const auto pass_until = [&](size_t end) {
    return end == from || pass(bytes.subspan(from, end - from));
  };
  while (at < bytes.size()) {
    const size_t count = std::min(left_, bytes.size() - at);
    at += count;
    left_ -= count;
    if (dropping_) from = at;
    if (left_ > 0 || at == bytes.size()) break;
    dropping_ = false;
    if (have_ == 0 && bytes.size() - at >= kHead) {
      if (!is_dropped(bytes.subspan(at, kHead))) {
        at += kHead;
        continue;
      }
      if (!pass_until(at)) return false;
      dropping_ = true;
      from = at += kHead;
      continue;
    }
    // A head in pieces is held back until it is whole.
    if (!pass_until(at)) return false;
    const size_t part = std::min(kHead - have_, bytes.size() - at);
    std::copy_n(bytes.data() + at, part, head_.data() + have_);
    have_ += part;
    from = at += part;
    if (have_ < kHead) return true;
    have_ = 0;
    dropping_ = is_dropped(head_);
    if (!dropping_ && !pass(head_)) return false;
  }
  return pass_until(at);
}

}  // namespace baton::protocol::grpc_wire
