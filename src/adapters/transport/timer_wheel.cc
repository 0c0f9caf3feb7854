#include "adapters/transport/timer_wheel.h"

#include <algorithm>
#include <bit>

namespace baton::adapters::transport {

TimerWheel::TimerWheel(Instant now) {
  heads_.fill(kNone);
  tick_ = std::min(static_cast<uint64_t>(std::max<int64_t>(now.ns(), 0)) >> kTickShift, kTickMax);
}

uint64_t TimerWheel::tick_at_or_after(Instant when) {
  const auto ns = static_cast<uint64_t>(std::max<int64_t>(when.ns(), 0));
  return std::min((ns + (uint64_t{1} << kTickShift) - 1) >> kTickShift, kTickMax);
}

uint32_t TimerWheel::list_for(uint64_t tick) const {
  if (tick <= tick_) return kDueList;
  const auto level = static_cast<uint64_t>(63 - std::countl_zero((tick ^ tick_) | 1)) / kSlotBits;
  const uint64_t slot = (tick >> (level * kSlotBits)) & (kSlots - 1);
  return static_cast<uint32_t>(level * kSlots + slot);
}

void TimerWheel::append(uint32_t list, uint32_t index) {
  Entry& entry = entries_[index];
  entry.list = list;
  uint32_t& head = heads_[list];
  if (head == kNone) {
    head = entry.next = entry.previous = index;
    if (list != kDueList) occupied_[list / kSlots] |= 1ULL << (list % kSlots);
    return;
  }
  entry.next = head;
  entry.previous = entries_[head].previous;
  entries_[entry.previous].next = index;
  entries_[head].previous = index;
}

void TimerWheel::remove(uint32_t index) {
  Entry& entry = entries_[index];
  uint32_t& head = heads_[entry.list];
  if (entry.next == index) {
    head = kNone;
    if (entry.list != kDueList) occupied_[entry.list / kSlots] &= ~(1ULL << (entry.list % kSlots));
  } else {
    entries_[entry.previous].next = entry.next;
    entries_[entry.next].previous = entry.previous;
    if (head == index) head = entry.next;
  }
  entry.list = kNone;
}

uint64_t TimerWheel::arm(Instant when, Action action) {
  if (free_ == kNone) {
    free_ = static_cast<uint32_t>(entries_.size());
    entries_.emplace_back();
  }
  const uint32_t index = free_;
  Entry& entry = entries_[index];
  free_ = entry.next;
  entry.action = std::move(action);
  entry.tick = tick_at_or_after(when);
  append(list_for(entry.tick), index);
  ++armed_;
  return (static_cast<uint64_t>(entry.generation) << 32) | (index + 1);
}

void TimerWheel::cancel(uint64_t id) {
  const auto index = static_cast<uint32_t>(id) - 1;
  if (index >= entries_.size()) return;
  Entry& entry = entries_[index];
  if (entry.list == kNone || entry.generation != id >> 32) return;
  remove(index);
  ++entry.generation;
  entry.next = free_;
  free_ = index;
  --armed_;
  // Last, since destroying what the action holds may come back here.
  const Action dropped = std::move(entry.action);
}

uint32_t TimerWheel::earliest(uint64_t& tick) const {
  for (uint32_t level = 0; level < kLevels; ++level) {
    if (occupied_[level] == 0) continue;
    // All timers of a level are in the current round of that level, so a lower level is always
    // earlier.
    const auto slot = static_cast<uint64_t>(std::countr_zero(occupied_[level]));
    const uint64_t shift = static_cast<uint64_t>(level) * kSlotBits;
    tick = (tick_ & ~((kSlots << shift) - 1)) | (slot << shift);
    return static_cast<uint32_t>(level * kSlots + slot);
  }
  return kNone;
}

Instant TimerWheel::next_wake() const {
  if (heads_[kDueList] != kNone) return Instant();
  uint64_t tick = 0;
  if (earliest(tick) == kNone) return Instant::never();
  return Instant::from_ns(static_cast<int64_t>(tick << kTickShift));
}

void TimerWheel::advance(uint64_t tick) {
  uint64_t begins = 0;
  for (uint32_t list = earliest(begins); list != kNone && begins <= tick; list = earliest(begins)) {
    tick_ = begins;
    while (heads_[list] != kNone) {
      const uint32_t index = heads_[list];
      remove(index);
      append(list_for(entries_[index].tick), index);
    }
  }
  tick_ = std::max(tick_, tick);
}

TimerWheel::Action TimerWheel::pop_due(Instant now) {
  if (heads_[kDueList] == kNone) {
    const auto tick = static_cast<uint64_t>(std::max<int64_t>(now.ns(), 0)) >> kTickShift;
    advance(std::min(tick, kTickMax));
  }
  const uint32_t index = heads_[kDueList];
  if (index == kNone) return {};
  remove(index);
  Entry& entry = entries_[index];
  ++entry.generation;
  entry.next = free_;
  free_ = index;
  --armed_;
  return std::move(entry.action);
}

}  // namespace baton::adapters::transport
