#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/time.h"

namespace baton::adapters::transport {

// Timers that are armed and cancelled far more often than they fire: both are O(1). Hierarchical
// wheel after Varghese and Lauck (1987): seven levels of 64 slots over ticks of 262 µs. A timer is
// due at the first tick at or after its time. Within one tick the order is that of arming, as far
// as the timers were armed for the same level. Owned by one loop.
class TimerWheel {
 public:
  using Action = std::move_only_function<void()>;

  explicit TimerWheel(Instant now);

  // A number that is not 0.
  uint64_t arm(Instant when, Action action);
  void cancel(uint64_t id);  // no effect when it has fired or was cancelled
  // When to call pop_due() next: not later than the earliest timer is due; never() without timers.
  // May be too early.
  [[nodiscard]] Instant next_wake() const;
  // Takes one action that is due at `now`, which must not go back; empty when none is.
  [[nodiscard]] Action pop_due(Instant now);
  [[nodiscard]] size_t size() const { return armed_; }

 private:
  static constexpr int kTickShift = 18;  // 2^18 ns
  static constexpr int kSlotBits = 6;
  static constexpr uint64_t kSlots = 1 << kSlotBits;
  static constexpr int kLevels = 7;
  static constexpr uint64_t kTickMax = (1ULL << (kSlotBits * kLevels)) - 1;
  static constexpr uint32_t kNone = ~0U;
  static constexpr uint32_t kDueList = kLevels * kSlots;

  struct Entry {
    Action action;
    uint64_t tick = 0;
    uint32_t next = kNone;
    uint32_t previous = kNone;
    uint32_t generation = 0;
    uint32_t list = kNone;  // level * kSlots + slot, or kDueList; kNone: free
  };

  [[nodiscard]] static uint64_t tick_at_or_after(Instant when);
  [[nodiscard]] uint32_t list_for(uint64_t tick) const;
  // The earliest occupied list of the wheel and the tick at which it begins; kNone when all are
  // empty.
  [[nodiscard]] uint32_t earliest(uint64_t& tick) const;
  void append(uint32_t list, uint32_t index);
  void remove(uint32_t index);
  void advance(uint64_t tick);

  std::vector<Entry> entries_;
  uint32_t free_ = kNone;
  size_t armed_ = 0;
  uint64_t tick_ = 0;                                 // every timer of the wheel is due after it
  std::array<uint64_t, kLevels> occupied_{};          // a bit for each slot
  std::array<uint32_t, kLevels * kSlots + 1> heads_;  // circular lists
};

}  // namespace baton::adapters::transport
