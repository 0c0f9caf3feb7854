#pragma once
// A decision, recorded once with its sequence number and reasons: the same form live and simulated.

#include <cstdint>
#include <string_view>

#include "base/time.h"
#include "domain/request.h"

namespace baton {

enum class DecisionKind : uint8_t { kAdmit, kRefuse, kFormBatch, kWait, kExpire, kCancel, kFinish };
[[nodiscard]] std::string_view decision_kind_name(DecisionKind kind);

// Why the policy chose so. One list for all decisions of batching and admission.
enum class DecisionReason : uint8_t {
  kNone,
  kWithinLimits,
  kItemsLimit,
  kBytesLimit,
  kLevelLimit,
  kBatchFull,
  kPreferredSize,
  kDelayOver,
  kNoGainFromWaiting,
  kDeadlineBounds,
  kWaitForArrivals,
  kQueueDeadline,
  kClientGone,
  kRunEnded,
  kTrial,       // larger than pays by the curve, to see whether the curve is right
  kRetryAlone,  // its batch failed: whose fault it was shows when each runs alone
};
[[nodiscard]] std::string_view decision_reason_name(DecisionReason reason);

// Fixed size, so that recording allocates nothing.
struct Decision {
  uint64_t sequence = 0;  // of the service that decided, without gaps
  Instant now{};
  DecisionKind kind = DecisionKind::kAdmit;
  DecisionReason reason = DecisionReason::kNone;
  uint32_t instance = 0;
  RequestId request{};  // the request, or the first member of the batch
  uint64_t items = 0;   // of the request or batch
  uint64_t queued = 0;  // items left in the queue after the decision
  uint64_t detail = 0;  // kWait: nanoseconds until asked again; kFormBatch: members
};

}  // namespace baton
