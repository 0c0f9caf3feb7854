#pragma once

#include "domain/decision.h"

namespace baton::ports {

// Takes every decision of one service, in the order of its sequence numbers, and before them the
// input that led to them. Called under the lock around the service: returns at once and allocates
// nothing.
class DecisionSink {
 public:
  virtual ~DecisionSink() = default;
  virtual void record(const Decision& decision) = 0;
  // Whether input() keeps anything. Asked once, by a service that is being made.
  [[nodiscard]] virtual bool takes_inputs() const { return false; }
  virtual void input(const DecisionInput& input) { static_cast<void>(input); }
};

}  // namespace baton::ports
