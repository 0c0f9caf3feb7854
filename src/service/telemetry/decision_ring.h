#pragma once
// The newest decisions of one dispatcher, in memory.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ports/decision_sink.h"

namespace baton::service {

// One writer at a time (the dispatcher's lock orders them), any number of readers beside it. A slot
// carries the number of its writing before and after its words, so a reader skips what is being
// overwritten and nobody waits.
class DecisionRing final : public ports::DecisionSink {
 public:
  explicit DecisionRing(size_t capacity = 1024);

  void record(const Decision& decision) override;
  // The newest `count` at most, oldest first.
  [[nodiscard]] std::vector<Decision> newest(size_t count) const;
  [[nodiscard]] uint64_t recorded() const { return written_.load(std::memory_order_acquire); }

 private:
  static constexpr size_t kWords = (sizeof(Decision) + 7) / 8;
  struct Slot {
    std::atomic<uint64_t> version{0};  // 2n+1 while the n-th writing is on its way, 2n+2 after it
    std::array<std::atomic<uint64_t>, kWords> words{};
  };
  size_t capacity_;
  std::unique_ptr<Slot[]> slots_;
  std::atomic<uint64_t> written_{0};
};

// {"seq":12,"t_ns":…,"kind":"form_batch","reason":…}: one line without its line feed.
[[nodiscard]] std::string decision_line(const Decision& decision);

}  // namespace baton::service
