#include "policy/admission/admission.h"

#include <algorithm>

namespace baton::policy {
namespace {

// What a client is told to wait when the whole server is full: one second spreads retries without a
// prediction.
constexpr Duration kRetryAfter = Duration::s(1);

}  // namespace

std::optional<AdmissionRefusal> refuse_admission(const AdmissionSnapshot& snapshot,
                                                 const AdmissionLimits& limits,
                                                 const AdmissionRequest& request, Instant now) {
  if (request.deadline <= now) {
    return AdmissionRefusal{{EndReason::kDeadlineQueued, "the request's deadline has passed", {}},
                            DecisionReason::kDeadlinePassed};
  }
  if (snapshot.in_flight >= limits.max_in_flight) {
    return AdmissionRefusal{
        {EndReason::kOverloaded,
         "the worker has " + std::to_string(snapshot.in_flight) +
             " requests in flight, its share of the server's limit; retry later",
         kRetryAfter},
        DecisionReason::kInFlightLimit};
  }
  // Alone, a request may be larger than the limit: it would never enter otherwise.
  const bool holds = snapshot.bytes > 0;
  if (holds && request.bytes > limits.max_bytes - std::min(snapshot.bytes, limits.max_bytes)) {
    return AdmissionRefusal{{EndReason::kOverloaded,
                             "the requests in flight hold the limit of " +
                                 std::to_string(limits.max_bytes) + " bytes; retry later",
                             kRetryAfter},
                            DecisionReason::kInFlightBytesLimit};
  }
  return std::nullopt;
}

Decision refusal_decision(const DecisionInput& input, DecisionReason limit) {
  return {.sequence = input.entry,
          .entry = input.entry,
          .now = input.now,
          .kind = DecisionKind::kRefuse,
          .reason = limit,
          .request = input.request,
          .items = input.items,
          .queued = input.in_flight,
          .detail = input.in_flight_bytes};
}

}  // namespace baton::policy
