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

std::vector<Decision> DecisionRing::newest(size_t count) const {
  const uint64_t end = written_.load(std::memory_order_acquire);
  const uint64_t most = std::min<uint64_t>({count, capacity_, end});
  std::vector<Decision> decisions;
  decisions.reserve(most);
  for (uint64_t number = end - most; number < end; ++number) {
    const Slot& slot = slots_[number % capacity_];
    std::array<uint64_t, kWords> words{};
    const uint64_t before = slot.version.load(std::memory_order_acquire);
    for (size_t i = 0; i < kWords; ++i) words[i] = slot.words[i].load(std::memory_order_acquire);
    const uint64_t after = slot.version.load(std::memory_order_relaxed);
    if (before != 2 * number + 2 || after != before) continue;  // overwritten meanwhile
    std::memcpy(&decisions.emplace_back(), words.data(), sizeof(Decision));
  }
  return decisions;
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
