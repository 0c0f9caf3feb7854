#pragma once
// For models with preserve_ordering: answers leave in the order in which their requests came.

#include <cstdint>
#include <deque>
#include <optional>

#include "policy/batching/batch_queues.h"

namespace baton::policy {

// Which answers are held back for those of earlier calls. A call that leaves without an answer
// (expired, cancelled) holds nobody back. O(log n) an operation in the calls that have not left.
class ReleaseOrder {
 public:
  void enter(uint64_t sequence, Slot slot);  // sequences ascend
  void leave(uint64_t sequence);             // without an answer
  void answered(uint64_t sequence);
  // Takes the first call, if it is answered; until nothing comes.
  std::optional<Slot> take_next();
  [[nodiscard]] size_t size() const { return calls_.size(); }

 private:
  enum class State : uint8_t { kOpen, kAnswered, kGone };
  struct Call {
    uint64_t sequence = 0;
    Slot slot = 0;
    State state = State::kOpen;
  };
  Call& find(uint64_t sequence);
  std::deque<Call> calls_;
};

}  // namespace baton::policy
