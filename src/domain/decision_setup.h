#pragma once
// What a service that decides was made with, so that another one made with it decides the same.

#include <cstdint>

#include "domain/latency_curve.h"
#include "domain/model.h"

namespace baton {

// A model version's dispatcher.
struct DispatcherSetup {
  ModelConfig config{};  // its name, max_batch_size, instance_count and batching part
  QueueLimits limits{};
  LatencyCurve curve{};  // empty: not measured
  Duration patience{};   // what a call without a deadline is taken to have
  Duration ageing{};     // how long one level may be overtaken by the level above
  Duration hand_over{};  // runs predicted to be shorter stay on the submitting thread
};

// A worker's admission.
struct AdmissionSetup {
  uint64_t max_in_flight = 0;
  uint64_t max_bytes = 0;
};

}  // namespace baton
