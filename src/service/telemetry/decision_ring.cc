#include "service/telemetry/decision_ring.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "base/json_writer.h"

namespace baton::service {

static_assert(std::is_trivially_copyable_v<Decision>);

DecisionRing::DecisionRing(size_t capacity)
    : capacity_(capacity), slots_(std::make_unique<Slot[]>(capacity)) {
  BATON_CHECK(capacity > 0);
}

void DecisionRing::record(const Decision& decision) {
  std::array<uint64_t, kWords> words{};
  std::memcpy(words.data(), &decision, sizeof decision);
  const uint64_t number = written_.load(std::memory_order_relaxed);
  Slot& slot = slots_[number % capacity_];
  slot.version.store(2 * number + 1, std::memory_order_relaxed);
  // Release stores on every word keep the odd version before them, for readers that acquire a word.
  for (size_t i = 0; i < kWords; ++i) slot.words[i].store(words[i], std::memory_order_release);
  slot.version.store(2 * number + 2, std::memory_order_release);
  written_.store(number + 1, std::memory_order_release);
}

DecisionRing::Tail DecisionRing::since(uint64_t from) const {
  Tail tail;
  tail.next = written_.load(std::memory_order_acquire);
  const uint64_t kept = tail.next > capacity_ ? tail.next - capacity_ : 0;
  const uint64_t begin = std::max(from, kept);
  for (uint64_t number = begin; number < tail.next; ++number) {
    const Slot& slot = slots_[number % capacity_];
    std::array<uint64_t, kWords> words{};
    const uint64_t before = slot.version.load(std::memory_order_acquire);
    for (size_t i = 0; i < kWords; ++i) words[i] = slot.words[i].load(std::memory_order_acquire);
    const uint64_t after = slot.version.load(std::memory_order_relaxed);
    if (before != 2 * number + 2 || after != before) continue;  // overwritten meanwhile
    std::memcpy(&tail.decisions.emplace_back(), words.data(), sizeof(Decision));
  }
  tail.missed = from < tail.next ? tail.next - from - tail.decisions.size() : 0;
  return tail;
}

std::vector<Decision> DecisionRing::newest(size_t count) const {
  const uint64_t end = recorded();
  return since(end - std::min<uint64_t>({count, capacity_, end})).decisions;
}

DecisionFile::DecisionFile(const DecisionRing& ring, std::string model, int64_t version)
    : ring_(ring) {
  JsonWriter json(head_);
  json.begin_object().field("model", model).field("version", version);
  head_ += ',';
}

void DecisionFile::write_new(ports::LogSink& sink) {
  const DecisionRing::Tail tail = ring_.since(next_);
  next_ = tail.next;
  if (tail.missed > 0) sink.write(head_ + "\"missed\":" + std::to_string(tail.missed) + "}");
  for (const Decision& decision : tail.decisions) {
    sink.write(head_ + decision_line(decision).substr(1));
  }
}

std::string decision_line(const Decision& decision) {
  std::string line;
  JsonWriter json(line);
  json.begin_object()
      .field("seq", decision.sequence)
      .field("t_ns", decision.now.ns())
      .field("kind", decision_kind_name(decision.kind))
      .field("reason", decision_reason_name(decision.reason))
      .field("instance", static_cast<uint64_t>(decision.instance))
      .field("request", decision.request.value())
      .field("items", decision.items)
      .field("queued", decision.queued)
      .field("detail", decision.detail)
      .end_object();
  return line;
}

}  // namespace baton::service
