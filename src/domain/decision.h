#pragma once
// A decision, recorded once with its sequence number and reasons, and what came in before it: the
// same form live and simulated.

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"
#include "domain/end_reason.h"
#include "domain/request.h"

namespace baton {

enum class DecisionKind : uint8_t {
  kAdmit,
  kRefuse,
  kRequeue,
  kFormBatch,
  kWait,
  kExpire,
  kCancel,
  kFinish
};
inline constexpr int kDecisionKindCount = 8;
[[nodiscard]] std::string_view decision_kind_name(DecisionKind kind);

// Why it was decided so. One list for all decisions of batching and admission.
enum class DecisionReason : uint8_t {
  kNone,
  kWithinLimits,
  kItemsLimit,
  kBytesLimit,
  kCallsLimit,
  kLevelLimit,
  kTooLarge,
  kDeadlinePassed,
  kInFlightLimit,
  kInFlightBytesLimit,
  kShuttingDown,
  kQueueTimeout,  // it waits on, behind others
  kRetryAlone,    // its batch failed: whose fault it was shows when each runs alone
  kTrial,         // larger than pays by the curve, to see whether the curve is right
  kBatchFull,
  kPreferredSize,
  kDelayOver,
  kNoGainFromWaiting,
  kDeadlineBounds,
  kWaitForArrivals,
  kQueueDeadline,
  kRunDeadline,
  kClientGone,
  kRunEnded,
  kRunFailed,
  kRunTerminated,
};
inline constexpr int kDecisionReasonCount = 26;
[[nodiscard]] std::string_view decision_reason_name(DecisionReason reason);

// A sentence each, for the reference.
[[nodiscard]] std::string_view decision_kind_meaning(DecisionKind kind);
[[nodiscard]] std::string_view decision_reason_meaning(DecisionReason reason);

// Fixed size, so that recording allocates nothing.
struct Decision {
  uint64_t sequence = 0;  // of the service that decided, without gaps
  uint64_t entry = 0;     // of the input that led to it
  Instant now{};
  DecisionKind kind = DecisionKind::kAdmit;
  DecisionReason reason = DecisionReason::kNone;
  uint32_t instance = 0;
  RequestId request{};  // the request, or the first member of the batch
  uint64_t items = 0;   // of the request or batch
  uint64_t queued = 0;  // items left in the queue after the decision
  uint64_t detail = 0;  // by kind, as decision_kind_meaning() says
};

// What enters a service that decides: one for each call into it.
enum class InputKind : uint8_t {
  kSubmit,
  kWillAsk,
  kNext,
  kFinish,
  kAbort,
  kStopAccepting,
  kClose,
  kAdmission,
  kAddInstance,
  kRemoveInstance
};
inline constexpr int kInputKindCount = 10;
[[nodiscard]] std::string_view input_kind_name(InputKind kind);
[[nodiscard]] std::optional<InputKind> parse_input_kind(std::string_view name);
[[nodiscard]] std::string_view input_kind_meaning(InputKind kind);

enum class RunOutcome : uint8_t { kDone, kFailed, kTerminated };
[[nodiscard]] std::string_view run_outcome_name(RunOutcome outcome);
[[nodiscard]] std::optional<RunOutcome> parse_run_outcome(std::string_view name);

// Everything of an input that a decision depends on; fields that a kind does not have stay at zero.
struct DecisionInput {
  uint64_t entry = 0;  // counts the calls into the service, without gaps
  Instant now{};       // as the service took it: never before that of the entry before
  InputKind kind = InputKind::kSubmit;
  EndReason end = EndReason::kOk;          // kAbort, kStopAccepting, kClose
  RunOutcome outcome = RunOutcome::kDone;  // kFinish
  bool also_running = false;               // kAbort
  uint32_t instance = 0;                // kWillAsk, kNext, kFinish, kAddInstance, kRemoveInstance
  RequestId request{};                  // kSubmit, kAdmission
  uint64_t call = 0;                    // kAbort: as submit gave it
  uint64_t items = 0;                   // kSubmit, kAdmission
  uint64_t bytes = 0;                   // kSubmit, kAdmission
  uint64_t batch_key = 0;               // kSubmit
  Instant deadline = Instant::never();  // kSubmit, kAdmission
  uint32_t priority = 0;                // kSubmit
  uint64_t in_flight = 0;               // kAdmission: requests that the worker holds
  uint64_t in_flight_bytes = 0;         // kAdmission
};

}  // namespace baton
