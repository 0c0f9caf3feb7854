#include "protocol/grpc_wire/message_reader.h"

#include <algorithm>
#include <utility>

namespace baton::protocol::grpc_wire {
namespace {

// Memory is taken at once up to here; beyond it a message grows as its bytes come.
constexpr size_t kReservedAtOnce = 1 << 20;

}  // namespace

MessageReader::Step MessageReader::read(std::span<const char>& bytes) {
  while (have_ < kPrefix) {
    if (bytes.empty()) return Step::kMore;
    prefix_[have_++] = static_cast<unsigned char>(bytes.front());
    bytes = bytes.subspan(1);
    if (have_ < kPrefix) continue;
    const Step step = open();
    if (step != Step::kMore) return step;
  }
  const size_t count = std::min(bytes.size(), size_t{length_} - message_.size());
  message_.append(bytes.data(), count);
  bytes = bytes.subspan(count);
  return message_.size() == length_ ? Step::kMessage : Step::kMore;
}

MessageReader::Step MessageReader::open() {
  if (prefix_[0] > 1) return Step::kMalformed;
  if (compressed() && !compressed_allowed_) return Step::kCompressed;
  length_ = uint32_t{prefix_[1]} << 24 | uint32_t{prefix_[2]} << 16 | uint32_t{prefix_[3]} << 8 |
            uint32_t{prefix_[4]};
  if (length_ > most_) return Step::kTooLarge;
  message_.reserve(std::min<size_t>(length_, kReservedAtOnce));
  return Step::kMore;
}

std::string MessageReader::take() {
  have_ = 0;
  return std::exchange(message_, {});
}

void MessageReader::drop() {
  have_ = 0;
  message_ = {};
}

std::array<char, MessageReader::kPrefix> message_prefix(uint32_t length, bool compressed) {
  return {static_cast<char>(compressed ? 1 : 0), static_cast<char>(length >> 24),
          static_cast<char>(length >> 16), static_cast<char>(length >> 8),
          static_cast<char>(length)};
}

}  // namespace baton::protocol::grpc_wire
