#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/function_ref.h"

namespace baton::protocol::grpc_wire {

// Takes RST_STREAM frames for calls that were never begun out of a client's bytes. gRPC's C++
// library, which Python's stands on, sends one when a call is cancelled before its head was
// written. To HTTP/2 that is an error of the whole connection (RFC 9113, 6.4): it would take the
// client's other calls with it.
class FrameFilter {
 public:
  // Gives what is left of `bytes` to `pass`, in order and in pieces; false as soon as that says so.
  [[nodiscard]] bool feed(std::span<const char> bytes,
                          FunctionRef<bool(std::span<const char>)> pass);

 private:
  static constexpr size_t kHead = 9;  // of a frame: length, type, flags, stream
  static constexpr size_t kPreface = 24;

  // Looks at a frame's head; true when the frame is dropped.
  bool is_dropped(std::span<const char> head);

  size_t left_ = kPreface;  // of the frame that is passed or dropped; the preface counts as one
  bool dropping_ = false;
  std::array<char, kHead> head_{};  // a head that came in pieces
  size_t have_ = 0;
  uint32_t last_begun_ = 0;  // stream
};

}  // namespace baton::protocol::grpc_wire
