#include "policy/batching/release_order.h"

#include <algorithm>

#include "base/check.h"

namespace baton::policy {

void ReleaseOrder::enter(uint64_t sequence, Slot slot) {
  BATON_CHECK(calls_.empty() || calls_.back().sequence < sequence);
  calls_.push_back({.sequence = sequence, .slot = slot});
}

ReleaseOrder::Call& ReleaseOrder::find(uint64_t sequence) {
  const auto found = std::ranges::lower_bound(calls_, sequence, {}, &Call::sequence);
  BATON_CHECK(found != calls_.end() && found->sequence == sequence);
  return *found;
}

void ReleaseOrder::leave(uint64_t sequence) {
  find(sequence).state = State::kGone;
}

void ReleaseOrder::answered(uint64_t sequence) {
  find(sequence).state = State::kAnswered;
}

std::optional<Slot> ReleaseOrder::take_next() {
  while (!calls_.empty() && calls_.front().state == State::kGone) calls_.pop_front();
  if (calls_.empty() || calls_.front().state != State::kAnswered) return std::nullopt;
  const Slot slot = calls_.front().slot;
  calls_.pop_front();
  return slot;
}

}  // namespace baton::policy
