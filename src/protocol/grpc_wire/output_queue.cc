#include "protocol/grpc_wire/output_queue.h"

#include <algorithm>
#include <utility>

namespace baton::protocol::grpc_wire {
namespace {

constexpr size_t kMostSpare = 16 << 10;  // a larger buffer is given back

}  // namespace

void OutputQueue::copy(std::span<const char> bytes) {
  if (bytes.empty()) return;
  if (pieces_.empty() || pieces_.back().keep != nullptr) {
    pieces_.emplace_back().text = std::exchange(spare_, {});
  }
  pieces_.back().text.append(bytes.data(), bytes.size());
  size_ += bytes.size();
}

void OutputQueue::refer(std::span<const char> bytes, Storage keep) {
  if (bytes.empty()) return;
  Piece& piece = pieces_.emplace_back();
  piece.view = bytes;
  piece.keep = std::move(keep);
  size_ += bytes.size();
}

void OutputQueue::front(size_t most, std::vector<std::span<const char>>& pieces) const {
  pieces.clear();
  for (const Piece& piece : pieces_) {
    if (pieces.size() == most) return;
    pieces.push_back(pieces.empty() ? piece.bytes().subspan(used_) : piece.bytes());
  }
}

void OutputQueue::consume(size_t bytes) {
  size_ -= bytes;
  used_ += bytes;
  while (!pieces_.empty() && used_ >= pieces_.front().bytes().size()) {
    used_ -= pieces_.front().bytes().size();
    std::string& text = pieces_.front().text;
    if (spare_.capacity() < text.capacity() && text.capacity() <= kMostSpare) {
      spare_ = std::move(text);
      spare_.clear();
    }
    pieces_.pop_front();
  }
}

void OutputQueue::move_to(OutputQueue& other, size_t bytes) {
  while (bytes > 0) {
    const Piece& piece = pieces_.front();
    const std::span<const char> left = piece.bytes().subspan(used_);
    const std::span<const char> part = left.first(std::min(bytes, left.size()));
    if (piece.keep == nullptr) {
      other.copy(part);
    } else {
      other.refer(part, piece.keep);
    }
    consume(part.size());
    bytes -= part.size();
  }
}

}  // namespace baton::protocol::grpc_wire
