#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "domain/model.h"
#include "policy/sequences/sequence_table.h"
#include "ports/sequencer.h"

namespace baton::service {

struct SequenceKeeperOptions {
  ModelConfig config;                     // complete: with the bytes of first states
  uint64_t state_bytes_max = 1ULL << 30;  // of all sequences of the model version
  uint32_t beginnings_max = 4096;         // that wait
  uint32_t steps_max = 65'536;            // that wait
};

// The order of policy/sequences with requests and states: what the runtime gets of a step, and what
// it leaves for the next.
class SequenceKeeper final : public ports::Sequencer {
 public:
  explicit SequenceKeeper(SequenceKeeperOptions options);

  std::optional<Refusal> arrive(ports::StepNumber step, std::shared_ptr<const InferRequest> request,
                                Instant now, ports::SequenceTurn& turn) override;
  std::optional<Refusal> ended(ports::StepNumber step, InferResult* result, Instant now,
                               ports::SequenceTurn& turn) override;
  bool leave(ports::StepNumber step, Instant now, ports::SequenceTurn& turn) override;
  Instant expire(Instant now, ports::SequenceTurn& turn) override;
  void stop_accepting(ports::SequenceTurn& turn) override;
  void close(ports::SequenceTurn& turn) override;
  void let_all_begin(Instant now, ports::SequenceTurn& turn) override;
  void set_instances(uint32_t count, Instant now, ports::SequenceTurn& turn) override;
  [[nodiscard]] size_t waiting_steps() const override { return table_.waiting_steps(); }
  [[nodiscard]] size_t running_steps() const override { return table_.running_steps(); }
  [[nodiscard]] ports::SequenceStats stats() const override;

 private:
  // A state tensor of one sequence.
  struct Kept {
    Shape shape;  // as the runtime sees it
    std::shared_ptr<const std::vector<std::byte>> bytes;
  };
  using States = std::vector<Kept>;  // as in the configuration
  struct Step {
    std::shared_ptr<const InferRequest> request;
    policy::SequenceNumber sequence = 0;
  };

  void apply(const policy::SequenceChanges& changes, Refusal why, ports::SequenceTurn& turn);
  [[nodiscard]] Refusal explain(policy::StepRefusal refusal, const CorrelationId& id) const;
  [[nodiscard]] std::shared_ptr<const InferRequest> complete(const InferRequest& request,
                                                             const States& states) const;
  void add_control(const SequenceControl& control, const SequenceStep& described,
                   InferRequest& request) const;
  [[nodiscard]] States first_states() const;
  // What the result holds for the next step.
  [[nodiscard]] Result<States, Refusal> read_states(const InferResult& result) const;
  void drop(policy::SequenceNumber sequence, ports::SequenceTurn& turn);
  void keep(policy::SequenceNumber sequence, States states, ports::SequenceTurn& turn);
  void hide_states(const InferRequest& request, InferResult& result) const;

  const SequenceKeeperOptions options_;
  const States first_;
  policy::SequenceTable table_;
  std::unordered_map<ports::StepNumber, Step> steps_;
  std::unordered_map<policy::SequenceNumber, States> states_;
  uint64_t state_bytes_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace baton::service
