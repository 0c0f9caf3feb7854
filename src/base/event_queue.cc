#include "base/event_queue.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace baton {

bool EventQueue::Entry::operator>(const Entry& other) const {
  return std::tie(when, priority, sequence) > std::tie(other.when, other.priority, other.sequence);
}

EventId EventQueue::schedule(Instant when, Action action, int priority) {
  const uint64_t sequence = next_sequence_++;
  heap_.push_back({when, priority, sequence});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  actions_.emplace(sequence, std::move(action));
  return EventId(sequence);
}

bool EventQueue::cancel(EventId id) {
  return actions_.erase(id.value()) == 1;
}

void EventQueue::drop_cancelled() {
  while (!heap_.empty() && !actions_.contains(heap_.front().sequence)) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
  }
}

std::optional<Instant> EventQueue::next_time() {
  drop_cancelled();
  if (heap_.empty()) return std::nullopt;
  return heap_.front().when;
}

std::optional<EventQueue::Due> EventQueue::pop_due(Instant now) {
  drop_cancelled();
  if (heap_.empty() || heap_.front().when > now) return std::nullopt;
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
  const Entry entry = heap_.back();
  heap_.pop_back();
  auto node = actions_.extract(entry.sequence);
  return Due{entry.when, std::move(node.mapped())};
}

}  // namespace baton
