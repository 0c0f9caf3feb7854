#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "protocol/compression/encoding.h"

namespace baton::protocol::compression {

// Expands one body piece by piece. Holds about 40 KiB, whatever it expands.
class Inflater {
 public:
  explicit Inflater(Encoding encoding);  // not kIdentity
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  struct Step {
    size_t taken = 0;  // of the input
    size_t made = 0;   // in the room
  };
  // Goes on until the input is used up or the room is full. Nothing when the input is no such
  // stream, or goes on behind its end: the object is of no further use.
  [[nodiscard]] std::optional<Step> step(std::string_view in, std::span<char> room);
  // Whether a stream has ended with the last byte taken: what follows it begins another one.
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  struct Stream;
  const Encoding encoding_;
  std::unique_ptr<Stream> stream_;
  bool complete_ = false;
};

// The pieces as one compressed body; level 1, which takes about 10 ns a byte and gains most of what
// higher ones do. Nothing when the result would not be smaller than the pieces.
[[nodiscard]] std::optional<std::string> compress(
    Encoding encoding, std::span<const std::span<const std::byte>> pieces);

}  // namespace baton::protocol::compression
