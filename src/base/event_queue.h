#pragma once
// The queue of timed work that the live control loop (adapters/control) and simulated runs share.
// Events come out ordered by (time, priority, sequence): equal times are resolved by priority, then
// by order of scheduling. Not for gateway workers: a cancelled event keeps its 24 bytes until its
// time comes, which for a timer a request and deadlines of an hour never ends (ADR 0005).

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/time.h"

namespace baton {

using EventId = Id<struct EventTag>;

// Not thread-safe; owned by one loop. Cancelling costs O(1); a cancelled entry is dropped when it
// surfaces.
class EventQueue {
 public:
  using Action = std::move_only_function<void()>;

  // Lower priority numbers come first among events of the same instant.
  EventId schedule(Instant when, Action action, int priority = 0);
  // False when the event has run or was cancelled before.
  bool cancel(EventId id);

  [[nodiscard]] bool empty() const { return actions_.empty(); }
  [[nodiscard]] size_t size() const { return actions_.size(); }
  // When the next event is due; nothing when the queue is empty.
  [[nodiscard]] std::optional<Instant> next_time();

  struct Due {
    Instant when;
    Action action;
  };
  // Takes the next event if it is due at or before `now`.
  std::optional<Due> pop_due(Instant now);

 private:
  struct Entry {
    Instant when;
    int priority;
    uint64_t sequence;
    bool operator>(const Entry& other) const;
  };
  void drop_cancelled();

  std::vector<Entry> heap_;                       // min-heap
  std::unordered_map<uint64_t, Action> actions_;  // by sequence; looked up, never iterated
  uint64_t next_sequence_ = 1;
};

}  // namespace baton
