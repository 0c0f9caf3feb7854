#include "domain/end_reason.h"

#include <array>

namespace baton {

std::string_view end_reason_name(EndReason reason) {
  static constexpr std::array<std::string_view, kEndReasonCount> kNames = {
      "ok",           "invalid",         "too_large",
      "unauthorized", "not_found",       "method_not_allowed",
      "unsupported",  "not_ready",       "queue_full",
      "overloaded",   "deadline_queued", "deadline_running",
      "client_gone",  "shutting_down",   "engine_failed",
      "slow_client"};
  return kNames[static_cast<size_t>(reason)];
}

std::optional<EndReason> parse_end_reason(std::string_view name) {
  for (int i = 0; i < kEndReasonCount; ++i) {
    const auto reason = static_cast<EndReason>(i);
    if (end_reason_name(reason) == name) return reason;
  }
  return std::nullopt;
}

}  // namespace baton
