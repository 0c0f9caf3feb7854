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
#include "ports/log_sink.h"

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
  struct Tail {
    std::vector<Decision> decisions;  // oldest first
    uint64_t next = 0;                // where the next tail begins
    uint64_t missed = 0;              // overwritten before they were read
  };
  // All that were recorded from the `from`-th on, as far as they are still there.
  [[nodiscard]] Tail since(uint64_t from) const;
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

// Follows one ring into a file: one JSON line a decision, with the model's name in front, and a
// line that counts what was missed. On one thread.
class DecisionFile {
 public:
  DecisionFile(const DecisionRing& ring, std::string model, int64_t version);
  void write_new(ports::LogSink& sink);

 private:
  const DecisionRing& ring_;
  std::string head_;  // {"model":…,"version":…,
  uint64_t next_ = 0;
};

// {"seq":12,"t_ns":…,"kind":"form_batch","reason":…}: one line without its line feed.
[[nodiscard]] std::string decision_line(const Decision& decision);

}  // namespace baton::service
