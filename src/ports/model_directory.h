#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "domain/latency_curve.h"
#include "domain/model.h"
#include "ports/engine.h"

namespace baton::ports {

// One version of a model as the gateway sees it. Immutable once published.
struct ModelVersion {
  std::string model;
  int64_t version = 0;
  ModelState state = ModelState::kPending;
  std::string reason;  // why it is not ready
  ModelConfig config;
  std::shared_ptr<EnginePort> engine;  // null unless ready
  LatencyCurve curve;                  // as it was when the version became ready, for predictions
  size_t metrics_slot = 0;             // index into the telemetry of models
};

struct ModelEntry {
  std::string name;
  bool required = false;  // readiness of the server waits for it
  bool has_been_ready = false;
  std::string reason;  // set when the model as a whole failed before any version was known
  std::map<int64_t, std::shared_ptr<const ModelVersion>> versions;
};

// All models at one moment. Immutable: replaced as a whole.
struct Directory {
  std::map<std::string, std::shared_ptr<const ModelEntry>, std::less<>> models;
  bool complete = false;  // the repositories have been scanned: what is not here does not exist
  bool accepting = true;  // false from SIGTERM on: readiness is false, requests are still served
};

// Publishes directories to the workers.
class ModelDirectory {
 public:
  virtual ~ModelDirectory() = default;
  // Any thread.
  [[nodiscard]] virtual std::shared_ptr<const Directory> snapshot() const = 0;
  // Grows with every publication: a worker keeps its snapshot while the number stands. Any thread;
  // one relaxed load.
  [[nodiscard]] virtual uint64_t generation() const = 0;
};

}  // namespace baton::ports
