#pragma once

#include "domain/decision.h"

namespace baton::ports {

// Takes every decision of one dispatcher, in the order of its sequence numbers. Called under the
// lock around the dispatcher: returns at once and allocates nothing.
class DecisionSink {
 public:
  virtual ~DecisionSink() = default;
  virtual void record(const Decision& decision) = 0;
};

}  // namespace baton::ports
