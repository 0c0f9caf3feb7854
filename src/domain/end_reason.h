#pragma once
// Why a request ended. One closed list for settlement, metrics, access log and the errors of every
// protocol.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace baton {

enum class EndReason : uint8_t {
  kOk,
  kInvalid,       // malformed or does not fit the model: the client's mistake
  kTooLarge,      // over a size limit
  kUnauthorized,  // no or wrong API key
  kNotFound,      // unknown route, model or version
  kMethodNotAllowed,
  kUnsupported,      // understood but not offered
  kNotReady,         // the model is known and not ready
  kQueueFull,        // over a limit on queued items or bytes
  kOverloaded,       // over a server-wide limit
  kDeadlineQueued,   // expired before it ran
  kDeadlineRunning,  // expired while it ran
  kClientGone,
  kShuttingDown,
  kEngineFailed,
  kSlowClient,  // its request did not arrive in time
};
inline constexpr int kEndReasonCount = 16;

// snake_case, as in metrics labels and logs: "queue_full".
[[nodiscard]] std::string_view end_reason_name(EndReason reason);
[[nodiscard]] std::optional<EndReason> parse_end_reason(std::string_view name);

// What a client is told when its request is not answered: what was wrong, what the limit is and
// what to do. `message` never holds an internal path, host or exception text.
struct Refusal {
  EndReason reason = EndReason::kInvalid;
  std::string message;
  Duration retry_after{};  // zero: no advice
};

}  // namespace baton
