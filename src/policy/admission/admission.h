#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "domain/decision.h"
#include "domain/end_reason.h"

namespace baton::policy {

// Limits of one worker: its share of the server's.
struct AdmissionLimits {
  uint64_t max_in_flight = 8192;
  // Bodies, or what they became in memory, held by requests in flight; one alone may have more.
  uint64_t max_bytes = 1ULL << 30;
};

struct AdmissionSnapshot {
  uint64_t in_flight = 0;
  uint64_t bytes = 0;
};

struct AdmissionRequest {
  uint64_t bytes = 0;
  Instant deadline = Instant::never();
};

struct AdmissionRefusal {
  Refusal refusal;
  DecisionReason limit = DecisionReason::kNone;
};

// The refusal, or nothing when the request may enter. A request whose deadline has passed never
// enters.
[[nodiscard]] std::optional<AdmissionRefusal> refuse_admission(const AdmissionSnapshot& snapshot,
                                                               const AdmissionLimits& limits,
                                                               const AdmissionRequest& request,
                                                               Instant now);

// How a refusal stands in the decision log, behind the input that led to it. A request that enters
// is decided where it queues, so each input here has one decision, of the same number.
[[nodiscard]] Decision refusal_decision(const DecisionInput& input, DecisionReason limit);

}  // namespace baton::policy
