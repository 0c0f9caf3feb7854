#pragma once
// An engine whose model keeps sequences: steps wait here for their turn, and go on to the engine
// that runs them.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "ports/clock.h"
#include "ports/engine.h"
#include "ports/sequencer.h"

namespace baton::adapters {

// Any thread may start and abort. Events arrive on each call's home, never within start() or
// abort().
class SequenceEngine final : public ports::EnginePort {
 public:
  // `engine` and `clock` outlive it; no event of `engine` comes after it has gone.
  SequenceEngine(std::unique_ptr<ports::Sequencer> sequencer, ports::EnginePort& engine,
                 const ports::Clock& clock);
  SequenceEngine(const SequenceEngine&) = delete;
  SequenceEngine& operator=(const SequenceEngine&) = delete;

  ports::StartedCall start(ports::EngineCall call, ports::EngineEvents& events) override;
  void abort(ports::CallId id, EndReason reason, ports::AbortScope scope) override;
  // Sequences that wait to begin do so.
  void expect_no_more() override;
  // Steps that wait here, or are on their way to or from the engine below, count as queued.
  [[nodiscard]] ports::EngineStats stats() const override;
  [[nodiscard]] std::vector<BatchSizeTotals> batch_totals() const override;
  [[nodiscard]] LatencyCurve curve() const override;

  // Ends sequences that have been idle for too long. Returns when to call again; never(): none is
  // idle.
  Instant end_idle();
  void set_instances(uint32_t count);

  // Takes no more steps; serves those it has until `deadline` and ends those that still wait then.
  // Blocks; the engine below serves on meanwhile.
  void drain(Instant deadline);

 private:
  struct Step;
  using StepPtr = std::shared_ptr<Step>;
  struct Begun {
    StepPtr step;
    std::shared_ptr<const InferRequest> request;
  };
  struct Ended {
    StepPtr step;
    Refusal refusal;
  };
  // What is done once the lock is open.
  struct Outbox {
    std::vector<Begun> begun;
    std::vector<Ended> ended;
    std::vector<Storage> freed;
  };

  template <class Take>
  void take_turn(Take take);
  void collect(ports::SequenceTurn& turn, Outbox& outbox);
  void hand_out(Outbox& outbox);
  // Returns when the caller is to abort the step with kOnlyQueued.
  Instant begin(const Begun& begun);
  void tell(const StepPtr& step, Refusal refusal) const;
  void on_end(Step& ended, ports::EngineEnd end);

  ports::EnginePort& engine_;
  const ports::Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable drained_;
  std::unique_ptr<ports::Sequencer> sequencer_;  // under mutex_, as all that follows
  std::unordered_map<uint64_t, StepPtr> steps_;  // found, never iterated
  uint64_t next_ = 1;
};

}  // namespace baton::adapters
