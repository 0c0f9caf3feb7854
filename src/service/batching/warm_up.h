#pragma once
// Warm-up of one model version's instances: the configured samples, the latency curve, and the
// check that a batch gives what single runs give. Synchronous; on a loader thread.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "domain/latency_curve.h"
#include "domain/model.h"
#include "policy/estimate/latency_fit.h"
#include "ports/clock.h"
#include "ports/model_runtime.h"

namespace baton::service {

using WarmUpInstances = std::span<const std::unique_ptr<ports::RuntimeInstance>>;

struct WarmUpOptions {
  Duration budget = Duration::s(10);    // for the curve, all instances together
  uint64_t max_bytes = 256ULL << 20;    // of one batch's inputs and outputs
  uint64_t seed = 1;                    // of random data
  const LatencyCurve* known = nullptr;  // from an earlier start: its sizes are run once, not timed
  // Contents of the files that warm-up samples name; BYTES data with length prefixes.
  const std::map<std::string, std::string>* files = nullptr;
};

struct WarmUpReport {
  LatencyCurve curve;        // empty: not measured
  std::string not_measured;  // why
  bool batch_checked = false;
  std::string not_checked;  // why a batch was not compared with single runs
};

struct WarmUpFailure {
  enum class Kind : uint8_t {
    kSample,        // a configured sample fails
    kBatchFails,    // single items run, a batch of them does not
    kBatchDiffers,  // a batch gives other results than single runs
  };
  Kind kind = Kind::kSample;
  std::string message;  // names model, output, what was found and what to do
};

// Runs on every instance: the samples; then batches of 1, 2, 4, … items, until the time per item
// falls by less than 5 %; then the configured preferred sizes, so that no size that serving will
// use is run for the first time by a client's request. A model that refuses made-up data is not
// measured, which is no failure: only its samples can say what it takes.
[[nodiscard]] Result<WarmUpReport, WarmUpFailure> warm_up(WarmUpInstances instances,
                                                          const ModelConfig& config,
                                                          const WarmUpOptions& options,
                                                          const ports::Clock& clock);

}  // namespace baton::service
