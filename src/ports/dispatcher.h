#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "ports/engine.h"
#include "ports/model_runtime.h"

namespace baton::ports {

using InstanceIndex = uint32_t;

// A call inside a dispatcher. Made outside its lock; the dispatcher moves it and allocates nothing
// for it.
struct DispatchedCall {
  CallId id;
  EngineCall call;
  EngineEvents* events = nullptr;
  CallTimings timings;
};

struct Submitted {
  bool accepted = false;
  Refusal refusal;  // when not accepted
  Instant queue_deadline = Instant::never();
  // An idle instance that is to ask for a batch now. The caller may lend it its own thread when
  // `inline_run` holds: the curve says that the run is shorter than a hand-over between threads.
  bool wake = false;
  InstanceIndex instance = 0;
  bool inline_run = false;
};

struct Batch {
  uint64_t number = 0;
  std::vector<DispatchedCall> members;  // not empty when a batch was formed
  uint64_t items = 0;
  [[nodiscard]] bool formed() const { return !members.empty(); }
};

struct NextBatch {
  Batch batch;                           // formed, or
  Instant ask_again = Instant::never();  // idle until woken or until then
};

// A call that has left the dispatcher, to be told to its events on its home.
struct EndedCall {
  DispatchedCall call;
  EngineEnd end;
};

// One model version's queue and instances. A pure state machine that knows no lock: its caller
// holds one, passes a `now` that never goes back, and carries out what is returned. Implemented by
// service/batching.
class Dispatcher {
 public:
  virtual ~Dispatcher() = default;

  virtual Submitted submit(DispatchedCall& call,
                           Instant now) = 0;  // moves from `call` when accepted
  // Instance `instance` is free and asks for work.
  virtual NextBatch next(InstanceIndex instance, Instant now) = 0;
  // The batch of `instance` ended. Calls that were aborted while it ran are not told again.
  virtual void finish(InstanceIndex instance, Batch batch, Result<BatchResult, RunFailure> outcome,
                      Instant now, std::vector<EndedCall>& ended) = 0;
  struct Aborted {
    bool reached = false;
    bool terminate = false;  // the last member is gone: terminate the run on `instance`
    InstanceIndex instance = 0;
  };
  virtual Aborted abort(CallId id, EndReason reason, AbortScope scope, Instant now,
                        std::vector<EndedCall>& ended) = 0;
  // Ends every queued call with `reason` and accepts no more.
  virtual void close(EndReason reason, Instant now, std::vector<EndedCall>& ended) = 0;

  [[nodiscard]] virtual EngineStats stats() const = 0;
};

}  // namespace baton::ports
