#pragma once
// Which step of which sequence runs next: order within a sequence, how many sequences are live,
// who waits to begin, and which have been idle for too long. Knows steps by numbers alone.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time.h"
#include "domain/sequence.h"

namespace baton::policy {

using StepNumber = uint64_t;      // the caller's; unique among the steps of a table
using SequenceNumber = uint64_t;  // one for each beginning of a sequence that was not live

struct SequenceLimits {
  uint32_t live = 1;           // sequences that have begun
  uint32_t beginnings = 4096;  // sequences that wait to begin
  uint32_t steps = 65'536;     // that wait, of all sequences
  Duration idle = Duration::s(1);
};

enum class StepRefusal : uint8_t {
  kNone,
  kUnknown,            // it begins nothing, and nothing of that id is there
  kIdle,               // the same; that sequence had no step for too long
  kTooManyBeginnings,  // over SequenceLimits::beginnings
  kTooManySteps,       // over SequenceLimits::steps
  kClosed,
};

// What follows from an event. Numbers stand in at most one list.
struct SequenceChanges {
  struct Run {
    StepNumber step = 0;
    SequenceNumber sequence = 0;
    bool begins = false;  // its state is the first one
  };
  std::vector<Run> run;              // steps whose turn has come
  std::vector<StepNumber> lost;      // an earlier step of theirs did not succeed: they cannot run
  std::vector<SequenceNumber> over;  // sequences whose state is to be dropped
};

// A step takes effect when it succeeds, and then alone: one that fails leaves the sequence where it
// was, so that it can be sent again; those that were sent behind it are lost. A failed beginning
// leaves no sequence. A beginning while its sequence is live begins it anew, in its turn.
//
// One thread at a time; `now` never goes back. Every accepted step leaves once: by ended(), by
// leave(), by `lost` or by close().
class SequenceTable {
 public:
  explicit SequenceTable(const SequenceLimits& limits) : limits_(limits) {}

  // Not accepted: nothing has changed but what `now` brought about.
  StepRefusal arrive(StepNumber step, const SequenceStep& described, Instant now,
                     SequenceChanges& changes);
  // A step that was told to run has ended.
  void ended(StepNumber step, bool succeeded, Instant now, SequenceChanges& changes);
  // A step gives up while it waits. False: it does not wait here.
  bool leave(StepNumber step, Instant now, SequenceChanges& changes);
  // Ends sequences that have been idle for too long.
  void expire(Instant now, SequenceChanges& changes);
  // Accepts no more steps; sequences end as soon as they have none.
  void stop_accepting(SequenceChanges& changes);
  // Loses every step that waits.
  void close(SequenceChanges& changes);
  // More lets beginnings in; fewer lets those that are live go on.
  void set_live_limit(uint32_t live, Instant now, SequenceChanges& changes);

  // When expire() has something to do: never() while no sequence is idle.
  [[nodiscard]] Instant next_expiry() const;
  [[nodiscard]] size_t live() const { return live_; }
  [[nodiscard]] size_t beginnings() const { return waiting_.size(); }
  [[nodiscard]] size_t waiting_steps() const { return steps_.size() - running_; }
  [[nodiscard]] size_t running_steps() const { return running_; }
  [[nodiscard]] uint64_t begun() const { return begun_; }  // since the beginning
  [[nodiscard]] uint64_t idle_ended() const { return idle_ended_; }

 private:
  struct Step {
    StepNumber number = 0;
    bool start = false;
    bool last = false;  // behind it the sequence is over
  };
  struct Sequence {
    SequenceNumber number = 0;
    CorrelationId id;
    bool live = false;
    bool running = false;    // the first of `steps`
    std::deque<Step> steps;  // that have not ended
    Instant quiet_since;     // while it is live without steps
  };

  void let_run(Sequence& sequence, SequenceChanges& changes);
  void go_on(Sequence& sequence, Instant now, SequenceChanges& changes);
  void lose_until_start(Sequence& sequence, size_t from, SequenceChanges& changes);
  void end(Sequence& sequence, SequenceChanges& changes);
  void leave_place(Sequence& sequence, SequenceChanges& changes);
  void admit(SequenceChanges& changes);
  void remember_idle(const CorrelationId& id);
  void forget_idle(const CorrelationId& id);

  SequenceLimits limits_;
  bool closed_ = false;
  SequenceNumber next_ = 1;
  size_t live_ = 0;
  size_t running_ = 0;
  uint64_t begun_ = 0;
  uint64_t idle_ended_ = 0;
  // Found, never iterated, but for `sequences_` in close().
  std::map<SequenceNumber, std::unique_ptr<Sequence>> sequences_;
  std::unordered_map<CorrelationId, Sequence*, CorrelationHash> by_id_;
  std::unordered_map<StepNumber, Sequence*> steps_;
  std::deque<SequenceNumber> waiting_;                  // to begin; the first comes next
  std::set<std::pair<Instant, SequenceNumber>> quiet_;  // live without steps, by quiet_since
  // Ids of those that ended idle, so that their next step is told why.
  std::unordered_map<CorrelationId, uint64_t, CorrelationHash> idle_ids_;
  std::deque<std::pair<CorrelationId, uint64_t>> idle_order_;
  uint64_t next_idle_ = 1;
};

}  // namespace baton::policy
