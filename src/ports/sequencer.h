#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "domain/end_reason.h"
#include "domain/request.h"
#include "ports/engine.h"

namespace baton::ports {

using StepNumber = uint64_t;

// What follows from an event: steps to run, with what the runtime needs beside what the client
// sent, and steps that end without having run.
struct SequenceTurn {
  struct Run {
    StepNumber step = 0;
    std::shared_ptr<const InferRequest> request;
  };
  struct Lost {
    StepNumber step = 0;
    Refusal refusal;
  };
  std::vector<Run> run;
  std::vector<Lost> lost;
  std::vector<Storage> freed;  // to be dropped outside the caller's lock
};

// One model version's sequences and their states. Knows no lock and no clock: its caller holds one,
// passes a `now` that never goes back, and carries out what is put into `turn`. Implemented by
// service/sequences.
class Sequencer {
 public:
  virtual ~Sequencer() = default;
  // A request that fits the model. Refusal: nothing was begun. Else it runs in this turn or a later
  // one, is lost, or leaves.
  virtual std::optional<Refusal> arrive(StepNumber step,
                                        std::shared_ptr<const InferRequest> request, Instant now,
                                        SequenceTurn& turn) = 0;
  // A step that was to be run has ended. Of one that succeeded, `result` is left with what its
  // client asked for, and its state is kept. Refusal: its state cannot be kept; it failed.
  virtual std::optional<Refusal> ended(StepNumber step, InferResult* result, Instant now,
                                       SequenceTurn& turn) = 0;
  // A step gives up while it waits for its turn. False: it does not wait.
  virtual bool leave(StepNumber step, Instant now, SequenceTurn& turn) = 0;
  // Ends sequences without a step for too long. Returns when to ask again; never(): none is idle.
  virtual Instant expire(Instant now, SequenceTurn& turn) = 0;
  // Refuses new steps; those that are there run on.
  virtual void stop_accepting(SequenceTurn& turn) = 0;
  // Ends every step that waits.
  virtual void close(SequenceTurn& turn) = 0;
  // Lets all begin that wait for it, whatever the limit, from now on.
  virtual void let_all_begin(Instant now, SequenceTurn& turn) = 0;
  // The model now has so many instances.
  virtual void set_instances(uint32_t count, Instant now, SequenceTurn& turn) = 0;

  [[nodiscard]] virtual size_t waiting_steps() const = 0;
  [[nodiscard]] virtual size_t running_steps() const = 0;
  [[nodiscard]] virtual SequenceStats stats() const = 0;
};

}  // namespace baton::ports
