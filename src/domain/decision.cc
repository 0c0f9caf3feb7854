#include "domain/decision.h"

#include <array>

namespace baton {

std::string_view decision_kind_name(DecisionKind kind) {
  static constexpr std::array<std::string_view, 7> kNames = {
      "admit", "refuse", "form_batch", "wait", "expire", "cancel", "finish"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view decision_reason_name(DecisionReason reason) {
  static constexpr std::array<std::string_view, 16> kNames = {"none",
                                                              "within_limits",
                                                              "items_limit",
                                                              "bytes_limit",
                                                              "level_limit",
                                                              "batch_full",
                                                              "preferred_size",
                                                              "delay_over",
                                                              "no_gain_from_waiting",
                                                              "deadline_bounds",
                                                              "wait_for_arrivals",
                                                              "queue_deadline",
                                                              "client_gone",
                                                              "run_ended",
                                                              "trial",
                                                              "retry_alone"};
  return kNames[static_cast<size_t>(reason)];
}

}  // namespace baton
