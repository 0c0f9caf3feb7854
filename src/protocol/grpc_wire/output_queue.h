#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "domain/tensor.h"

namespace baton::protocol::grpc_wire {

// Bytes on their way to the peer, in order: small ones copied together, large ones as views.
class OutputQueue {
 public:
  void copy(std::span<const char> bytes);
  // `keep` keeps them alive until they are consumed.
  void refer(std::span<const char> bytes, Storage keep);
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  // The first pieces, `most` of them at most. Valid until the queue is changed.
  void front(size_t most, std::vector<std::span<const char>>& pieces) const;
  void consume(size_t bytes);
  // Moves the first `bytes` to the end of `other`; views stay views.
  void move_to(OutputQueue& other, size_t bytes);

 private:
  struct Piece {
    std::string text;  // its bytes when `keep` is null
    std::span<const char> view;
    Storage keep;
    [[nodiscard]] std::span<const char> bytes() const {
      return keep == nullptr ? std::span<const char>(text) : view;
    }
  };

  std::deque<Piece> pieces_;
  size_t used_ = 0;  // of the first piece
  size_t size_ = 0;
  std::string spare_;  // the buffer of a piece that has gone
};

}  // namespace baton::protocol::grpc_wire
