#pragma once
// The newest decisions of one service, in memory, and on the way to a file.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ports/decision_sink.h"
#include "ports/log_sink.h"
#include "protocol/decision_log/decision_log.h"
#include "service/telemetry/slot_ring.h"

namespace baton::service {

// One record on its way to the file.
using DecisionRecord = std::variant<Decision, DecisionInput>;

// Called under the lock of the service that decides; readers on any thread. Inputs are kept only
// for a file.
class DecisionRing final : public ports::DecisionSink {
 public:
  // `file_records` 0: for memory alone.
  explicit DecisionRing(size_t capacity = 1024, size_t file_records = 0);

  void record(const Decision& decision) override;
  [[nodiscard]] bool takes_inputs() const override { return file_ != nullptr; }
  void input(const DecisionInput& input) override;

  // The newest `count` at most, oldest first.
  [[nodiscard]] std::vector<Decision> newest(size_t count) const;
  [[nodiscard]] uint64_t recorded() const { return decisions_.written(); }
  // What waits for the file; nothing when there is none.
  [[nodiscard]] SlotRing<DecisionRecord>* file() const { return file_.get(); }

 private:
  SlotRing<Decision> decisions_;
  std::unique_ptr<SlotRing<DecisionRecord>> file_;
};

// Follows one ring into a file: a line with what the service was made with, then one JSON line a
// record, and a line that counts what was missed. On one thread.
class DecisionFile {
 public:
  DecisionFile(const DecisionRing& ring, protocol::decision_log::LineWriter writer,
               std::string setup_line);
  // How many records were missed since the last call.
  uint64_t write_new(ports::LogSink& sink);

 private:
  const DecisionRing& ring_;
  protocol::decision_log::LineWriter writer_;
  std::string setup_line_;  // empty once it is written
  uint64_t next_ = 0;
};

}  // namespace baton::service
