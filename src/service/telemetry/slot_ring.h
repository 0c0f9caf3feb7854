#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/check.h"

namespace baton::service {

// The newest values of a fixed size. One writer at a time (its caller orders them), any number of
// readers beside it. A slot carries the number of its writing before and after its words, so a
// reader skips what is being overwritten and nobody waits.
template <class T>
class SlotRing {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit SlotRing(size_t capacity)
      : capacity_(capacity), slots_(std::make_unique<Slot[]>(capacity)) {
    BATON_CHECK(capacity > 0);
  }

  void push(const T& value) {
    std::array<uint64_t, kWords> words{};
    std::memcpy(words.data(), &value, sizeof value);
    const uint64_t number = written_.load(std::memory_order_relaxed);
    Slot& slot = slots_[number % capacity_];
    slot.version.store(2 * number + 1, std::memory_order_relaxed);
    // Release stores on every word keep the odd version before them, for readers that acquire one.
    for (size_t i = 0; i < kWords; ++i) slot.words[i].store(words[i], std::memory_order_release);
    slot.version.store(2 * number + 2, std::memory_order_release);
    written_.store(number + 1, std::memory_order_release);
  }

  struct Tail {
    std::vector<T> values;  // oldest first
    uint64_t next = 0;      // where the next tail begins
    uint64_t missed = 0;    // overwritten before they were read
  };
  // All that were written from the `from`-th on, as far as they are still there.
  [[nodiscard]] Tail since(uint64_t from) const {
    Tail tail;
    tail.next = written_.load(std::memory_order_acquire);
    const uint64_t kept = tail.next > capacity_ ? tail.next - capacity_ : 0;
    for (uint64_t number = std::max(from, kept); number < tail.next; ++number) {
      const Slot& slot = slots_[number % capacity_];
      std::array<uint64_t, kWords> words{};
      const uint64_t before = slot.version.load(std::memory_order_acquire);
      for (size_t i = 0; i < kWords; ++i) words[i] = slot.words[i].load(std::memory_order_acquire);
      const uint64_t after = slot.version.load(std::memory_order_relaxed);
      if (before != 2 * number + 2 || after != before) continue;  // overwritten meanwhile
      std::memcpy(static_cast<void*>(&tail.values.emplace_back()), words.data(), sizeof(T));
    }
    tail.missed = from < tail.next ? tail.next - from - tail.values.size() : 0;
    return tail;
  }
  [[nodiscard]] uint64_t written() const { return written_.load(std::memory_order_acquire); }
  [[nodiscard]] size_t capacity() const { return capacity_; }

 private:
  static constexpr size_t kWords = (sizeof(T) + 7) / 8;
  struct Slot {
    std::atomic<uint64_t> version{0};  // 2n+1 while the n-th writing is on its way, 2n+2 after it
    std::array<std::atomic<uint64_t>, kWords> words{};
  };
  size_t capacity_;
  std::unique_ptr<Slot[]> slots_;
  std::atomic<uint64_t> written_{0};
};

}  // namespace baton::service
