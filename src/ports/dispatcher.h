#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "domain/decision.h"
#include "ports/engine.h"
#include "ports/model_runtime.h"

namespace baton::ports {

using InstanceIndex = uint32_t;

// A call inside a dispatcher. Made outside its lock; the dispatcher moves it and allocates nothing
// for it.
struct DispatchedCall {
  CallId id;  // given by submit()
  EngineCall call;
  EngineEvents* events = nullptr;
  CallTimings timings;
};

struct Submitted {
  bool accepted = false;
  CallId id;  // unique within the dispatcher, also when refused
  Instant queue_deadline = Instant::never();
  // An idle instance that is to ask for a batch now. The caller may lend it its own thread when
  // `inline_run` holds: the curve says that the run is shorter than a hand-over between threads.
  bool wake = false;
  bool inline_run = false;
  InstanceIndex instance = 0;
  // When not accepted:
  EndReason reason = EndReason::kQueueFull;
  DecisionReason limit = DecisionReason::kNone;
  Duration retry_after;
};

// A batch is its caller's: filled by next(), given back by finish(), reused for the next one.
struct Batch {
  uint64_t number = 0;
  std::vector<DispatchedCall> members;
  uint64_t items = 0;
  [[nodiscard]] bool formed() const { return !members.empty(); }
};

struct NextBatch {
  Instant ask_again = Instant::never();  // without a batch: idle until woken or until then
  bool wake = false;                     // another idle instance is to ask too
  InstanceIndex instance = 0;
};

// A call that has left the dispatcher, to be told to its events on its home.
struct EndedCall {
  DispatchedCall call;
  EngineEnd end;
};

// One model version's queue and instances. A pure state machine that knows no lock: its caller
// holds one, passes a `now` that never goes back, and carries out what is returned. Calls that
// leave are appended to `ended`, each accepted call exactly once. Implemented by service/batching.
class Dispatcher {
 public:
  virtual ~Dispatcher() = default;

  virtual Submitted submit(DispatchedCall& call,
                           Instant now) = 0;  // moves from `call` when accepted
  // An idle instance asks for work soon, unasked: its time to ask again has come and it waits for a
  // permit. Until it does, it is not woken or lent.
  virtual void will_ask(InstanceIndex instance) = 0;
  // Instance `instance` is free and asks for work. `batch` comes without members and leaves with
  // some, or none. Calls whose queue deadline has passed end here if their timers have not fired
  // yet.
  virtual NextBatch next(InstanceIndex instance, Instant now, Batch& batch,
                         std::vector<EndedCall>& ended) = 0;
  // The batch of `instance` ended. When a batch of several fails, each member is queued again to
  // run alone: one client's values do not fail another's request. The instance asks for its next
  // batch soon. Calls that were aborted while it ran are not told again: they stay in `batch`, so
  // that the caller frees them outside its lock.
  virtual void finish(InstanceIndex instance, Batch& batch,
                      Result<BatchResult, RunFailure>& outcome, Instant now,
                      std::vector<EndedCall>& ended) = 0;
  struct Aborted {
    bool reached = false;
    bool terminate = false;  // the last member is gone: terminate the run on `instance`
    InstanceIndex instance = 0;
  };
  virtual Aborted abort(CallId id, EndReason reason, AbortScope scope, Instant now,
                        std::vector<EndedCall>& ended) = 0;
  // One more instance, which asks for work soon: a number that is free, else the next one.
  virtual InstanceIndex add_instance(Instant now) = 0;
  // `instance` runs nothing, asks no more and is not woken any more; without it the others serve
  // on. Not the last one.
  virtual NextBatch remove_instance(InstanceIndex instance, Instant now) = 0;
  // Refuses new calls with `reason` from now on; those it has are served.
  virtual void stop_accepting(EndReason reason) = 0;
  // Ends every queued call with `reason` too.
  virtual void close(EndReason reason, Instant now, std::vector<EndedCall>& ended) = 0;

  [[nodiscard]] virtual size_t queued_calls() const = 0;
  [[nodiscard]] virtual size_t running_calls() const = 0;  // those that were not aborted
  [[nodiscard]] virtual EngineStats stats() const = 0;
  [[nodiscard]] virtual std::vector<BatchSizeTotals> batch_totals() const = 0;
  [[nodiscard]] virtual LatencyCurve curve() const = 0;
  // The rank of the most urgent queued call, for permits that several models share; never() when
  // nothing is queued.
  [[nodiscard]] virtual Instant most_urgent() const = 0;
  // What a client is told when `submit` refuses. Does not change after construction: no lock
  // needed.
  [[nodiscard]] virtual const std::string& refusal_text(DecisionReason limit) const = 0;
};

}  // namespace baton::ports
