#include "adapters/instances/end_text.h"

namespace baton::adapters {

// Refusals at the door have the dispatcher's texts.
std::string end_text(EndReason reason) {
  switch (reason) {
    case EndReason::kDeadlineQueued:
      return "the deadline passed while the request waited to run; allow more time or retry later";
    case EndReason::kDeadlineRunning:
      return "the deadline passed while the request ran; allow more time";
    case EndReason::kShuttingDown:
      return "the model is shutting down; retry elsewhere";
    case EndReason::kClientGone:
      return "the client cancelled the request";
    case EndReason::kEngineFailed:
      return "the model's run failed; retry";
    default:
      return std::string(end_reason_name(reason));
  }
}

}  // namespace baton::adapters
