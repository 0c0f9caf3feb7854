#pragma once
// The queued calls of one model, by batch key and urgency. State that the caller of the batching
// policy owns.

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/time.h"

namespace baton::policy {

using Slot = uint32_t;  // a call, by the caller's dense and recycled numbers
using KeyIndex = uint32_t;
inline constexpr KeyIndex kNoKey = UINT32_MAX;

// What batching needs to know of a call.
struct QueuedCall {
  uint64_t sequence = 0;  // of arrival: breaks ties
  uint32_t level = 1;     // 1 is the most urgent
  uint64_t items = 1;
  uint64_t bytes = 0;
  Instant queued{};
  Instant deadline = Instant::never();  // end to end
  Instant queue_deadline =
      Instant::never();  // when it leaves the queue unserved; at or before `deadline`
  Instant delay_at = Instant::never();  // when it is to go behind others
};

// Places calls in one order. A call ranks by min(queue deadline, delay, queued + patience) +
// (level - 1) * ageing: an instant that never changes while it waits, a delay excepted, so ageing
// costs nothing. No call that arrives after that instant can rank before it, which bounds every
// call's wait whatever the others' deadlines and levels are: to patience + (level - 1) * ageing,
// once more patience if it is delayed, and what serving those takes that came until then. While
// patience is at most ageing, levels are strict but for that: a call passes one of a more urgent
// level only after it has waited for ageing.
struct RankRule {
  Duration patience = Duration::s(1);  // what a call without a deadline is taken to have
  Duration ageing = Duration::s(1);    // how long one level may be overtaken by the level above
};
[[nodiscard]] Instant rank_of(const QueuedCall& call, const RankRule& rule);

struct Ranked {
  Instant rank;
  uint64_t sequence = 0;
  uint32_t index = 0;  // a Slot, or a KeyIndex
  auto operator<=>(const Ranked&) const = default;
};
using RankedSet = std::pmr::set<Ranked>;

// O(log n) an operation; nodes come from a pool that only grows. Not thread-safe. Pinned: the
// pool's users point into it.
class BatchQueues {
 public:
  explicit BatchQueues(RankRule rule);
  BatchQueues(const BatchQueues&) = delete;
  BatchQueues& operator=(const BatchQueues&) = delete;

  // The key with this hash whose members look like the new call, or kNoKey. `same(slot)` compares
  // with one queued member: equal hashes may hide different layouts.
  template <class Same>
  [[nodiscard]] KeyIndex find_key(uint64_t hash, Same same) const {
    const auto [first, last] = keys_by_hash_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      if (same(keys_[it->second]->members.begin()->index)) return it->second;
    }
    return kNoKey;
  }

  // With kNoKey a new key is opened. A key closes when its last member leaves.
  void push(Slot slot, const QueuedCall& call, uint64_t hash, KeyIndex key);
  void remove(Slot slot);
  // Ranks a call behind all that are not demoted.
  void demote(Slot slot);
  // Its delay has come: ranks it as if it had been queued now, without a queue deadline.
  void delay(Slot slot, Instant now);
  [[nodiscard]] bool demoted(Slot slot) const { return nodes_[slot].rank == kLast; }

  [[nodiscard]] const QueuedCall& call(Slot slot) const { return nodes_[slot].call; }
  [[nodiscard]] size_t calls() const { return calls_; }
  [[nodiscard]] uint64_t items() const { return items_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] uint64_t calls_of_level(uint32_t level) const;
  [[nodiscard]] Instant first_rank() const;  // never() when empty
  // A call whose queue deadline or delay is at or before `now`, the earliest first.
  [[nodiscard]] std::optional<Slot> first_due(Instant now) const;
  [[nodiscard]] std::optional<Slot> first_by_rank() const;

  [[nodiscard]] const RankedSet& keys() const { return key_order_; }  // by their heads
  [[nodiscard]] const RankedSet& members(KeyIndex key) const { return keys_[key]->members; }
  [[nodiscard]] uint64_t items_of(KeyIndex key) const { return keys_[key]->items; }

 private:
  static constexpr Instant kLast = Instant::never() - Duration::ns(1);
  struct Node {
    QueuedCall call;
    Instant rank;
    KeyIndex key = kNoKey;
  };
  struct Key {
    explicit Key(std::pmr::memory_resource* pool) : members(pool) {}
    uint64_t hash = 0;
    uint64_t items = 0;
    RankedSet members;
  };
  void move(Slot slot, Instant rank);
  void watch(Slot slot);
  void unwatch(Slot slot);
  void enter(KeyIndex key, const Ranked& entry);
  void leave(KeyIndex key, const Ranked& entry);
  KeyIndex open_key(uint64_t hash);
  void close_key(KeyIndex key);
  [[nodiscard]] Ranked head_of(KeyIndex key) const;

  RankRule rule_;
  std::pmr::unsynchronized_pool_resource pool_;
  std::vector<Node> nodes_;  // by slot
  std::vector<std::unique_ptr<Key>> keys_;
  std::vector<KeyIndex> free_keys_;
  std::pmr::unordered_multimap<uint64_t, KeyIndex> keys_by_hash_;  // looked up, never iterated
  RankedSet key_order_;
  RankedSet by_due_;  // by queue deadline or delay; only calls that have one
  std::vector<uint64_t> calls_by_level_;
  size_t calls_ = 0;
  uint64_t items_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace baton::policy
