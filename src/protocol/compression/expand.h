#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/result.h"
#include "protocol/compression/encoding.h"

namespace baton::protocol::compression {

enum class ExpandError : uint8_t {
  kBroken,    // the bytes are no such stream, or go on behind its end
  kCut,       // they end within the stream
  kTooLarge,  // the room or the limit is used up
};

// What is compressed becomes at most this many times as large in common: what grows beyond is
// counted before memory is taken for it.
inline constexpr uint64_t kUsualRatio = 4;
inline constexpr size_t kExpandScratch = 16 << 10;

// Expands all of `body`. `room()` gives where the next bytes go, or nothing to end with kTooLarge;
// `commit()` takes what was made there. 1 to 6 ns a byte made. Not for kIdentity.
[[nodiscard]] Result<void, ExpandError> expand_into(Encoding encoding, std::string_view body,
                                                    FunctionRef<std::span<char>()> room,
                                                    FunctionRef<void(size_t)> commit);

// What `body` expands to, at most `limit` bytes; no memory is taken.
[[nodiscard]] Result<uint64_t, ExpandError> expanded_size(Encoding encoding, std::string_view body,
                                                          uint64_t limit);

// The expanded text, at most `limit` bytes. Takes at most four times the bytes that came, and
// kExpandScratch, before it knows that the result is within the limit.
[[nodiscard]] Result<std::string, ExpandError> expand_text(Encoding encoding, std::string_view body,
                                                           uint64_t limit);

}  // namespace baton::protocol::compression
