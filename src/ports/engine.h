#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "domain/end_reason.h"
#include "domain/latency_curve.h"
#include "domain/request.h"
#include "domain/statistics.h"
#include "ports/executor.h"

namespace baton::ports {

using CallId = Id<struct CallTag>;

struct EngineCall {
  std::shared_ptr<const InferRequest> request;
  Executor* home = nullptr;  // where the events arrive: the worker that called
};

// When the stages of a call happened, for statistics. Unset stages stay at zero.
struct CallTimings {
  Instant queued;
  Instant started;        // its batch began: inputs are being gathered
  Instant computed_from;  // the model's own run began
  Instant computed_to;
  Instant ended;
  uint32_t batch_items = 0;
};

struct EngineEnd {
  EndReason reason = EndReason::kOk;
  InferResult result;  // when reason is kOk
  Refusal refusal;     // otherwise
  CallTimings timings;
};

class EngineEvents {
 public:
  virtual ~EngineEvents() = default;
  // Exactly once for every started call, on the call's home, never from within start() or abort().
  virtual void on_end(CallId id, EngineEnd end) = 0;
};

// Which calls an abort reaches.
enum class AbortScope : uint8_t { kOnlyQueued, kAlsoRunning };

struct StartedCall {
  CallId id;
  Instant queue_deadline;  // when the caller is to abort it with kOnlyQueued; never() when nothing
                           // bounds the queue
};

// Of a model that keeps sequences.
struct SequenceStats {
  uint64_t live = 0;
  uint64_t begun = 0;        // since the engine started, as all that follows but `state_bytes`
  uint64_t idle_ended = 0;   // without a step for too long
  uint64_t lost_steps = 0;   // behind one that failed
  uint64_t state_bytes = 0;  // kept between steps
};

// What an engine did since it started, and what it holds.
struct EngineStats {
  uint64_t queued_calls = 0;
  uint64_t running_calls = 0;
  uint64_t executions = 0;      // runs of the model
  uint64_t executed_items = 0;  // rows over all runs
  // Runs by batch size in rows: [i] counts sizes in (2^(i-1), 2^i], [0] counts size 1; the last
  // holds all above.
  std::array<uint64_t, 12> batch_sizes{};
  std::optional<SequenceStats> sequences{};  // absent: requests stand alone
};

// What baton needs of a replica that can execute requests. `events` outlives the call. Called on
// the home worker.
class EnginePort {
 public:
  virtual ~EnginePort() = default;
  virtual StartedCall start(EngineCall call, EngineEvents& events) = 0;
  // Idempotent. A call that is reached ends with `reason`, at once even while its batch runs on;
  // the batch itself is terminated only when all of its members are gone.
  virtual void abort(CallId id, EndReason reason, AbortScope scope) = 0;
  // Few calls will come, if any, and what it has is to end soon: nothing waits for calls that are
  // yet to come. Any thread.
  virtual void expect_no_more() {}
  // Any thread.
  [[nodiscard]] virtual EngineStats stats() const = 0;
  // Of each batch size that has run, ascending. Any thread.
  [[nodiscard]] virtual std::vector<BatchSizeTotals> batch_totals() const = 0;
  // The performance model as refined while serving; empty when it was not measured. Any thread.
  [[nodiscard]] virtual LatencyCurve curve() const = 0;
};

}  // namespace baton::ports
