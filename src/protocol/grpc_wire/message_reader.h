#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace baton::protocol::grpc_wire {

// Takes the messages of one call out of its bytes: a byte that says whether it is compressed, four
// of length, big-endian, then the message.
class MessageReader {
 public:
  enum class Step {
    kMore,        // the bytes are used up
    kMessage,     // take() it; compressed() says whether it is
    kTooLarge,    // the next message is larger than the limit; the reader is done
    kCompressed,  // the next message is compressed, which is not allowed; the reader is done
    kMalformed,   // the flag is neither; the reader is done
  };

  void set_limit(size_t most) { most_ = most; }
  void allow_compressed() { compressed_allowed_ = true; }
  // Uses bytes up to the end of one message.
  Step read(std::span<const char>& bytes);
  [[nodiscard]] std::string take();
  // Of the message that was read last.
  [[nodiscard]] bool compressed() const { return prefix_[0] == 1; }
  // Bytes held of a message that is not complete, its prefix included.
  [[nodiscard]] size_t partial() const { return have_ + message_.size(); }
  [[nodiscard]] size_t limit() const { return most_; }
  [[nodiscard]] uint64_t announced() const { return have_ < kPrefix ? 0 : length_; }
  void drop();

  static constexpr size_t kPrefix = 5;

 private:
  Step open();

  size_t most_ = 0;
  bool compressed_allowed_ = false;
  std::array<unsigned char, kPrefix> prefix_{};
  size_t have_ = 0;  // of the prefix
  uint32_t length_ = 0;
  std::string message_;
};

[[nodiscard]] std::array<char, MessageReader::kPrefix> message_prefix(uint32_t length,
                                                                      bool compressed = false);

}  // namespace baton::protocol::grpc_wire
