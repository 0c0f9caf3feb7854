#include "service/telemetry/decision_ring.h"

#include <algorithm>
#include <utility>

namespace baton::service {

DecisionRing::DecisionRing(size_t capacity, size_t file_records) : decisions_(capacity) {
  if (file_records > 0) file_ = std::make_unique<SlotRing<DecisionRecord>>(file_records);
}

void DecisionRing::record(const Decision& decision) {
  decisions_.push(decision);
  if (file_) file_->push(decision);
}

void DecisionRing::input(const DecisionInput& input) {
  if (file_) file_->push(input);
}

std::vector<Decision> DecisionRing::newest(size_t count) const {
  const uint64_t end = recorded();
  return decisions_.since(end - std::min<uint64_t>({count, decisions_.capacity(), end})).values;
}

DecisionFile::DecisionFile(const DecisionRing& ring, protocol::decision_log::LineWriter writer,
                           std::string setup_line)
    : ring_(ring), writer_(std::move(writer)), setup_line_(std::move(setup_line)) {}

uint64_t DecisionFile::write_new(ports::LogSink& sink) {
  if (ring_.file() == nullptr) return 0;
  if (!setup_line_.empty()) sink.write(std::exchange(setup_line_, {}));
  const auto tail = ring_.file()->since(next_);
  next_ = tail.next;
  if (tail.missed > 0) sink.write(writer_.missed(tail.missed));
  for (const DecisionRecord& record : tail.values) {
    const auto* input = std::get_if<DecisionInput>(&record);
    sink.write(input != nullptr ? writer_.input(*input)
                                : writer_.decision(*std::get_if<Decision>(&record)));
  }
  return tail.missed;
}

}  // namespace baton::service
