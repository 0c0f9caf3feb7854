#pragma once

#include <cstdint>
#include <functional>
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
  EngineStats earlier;                 // what engines did that served this version before
};

struct ModelEntry {
  std::string name;
  bool required = false;  // readiness of the server waits for it
  bool has_been_ready = false;
  // Every version that was to serve from the start on has been ready, or was unloaded since:
  // nothing that becomes of the model afterwards changes the server's readiness.
  bool started = false;
  std::string reason;  // why the model as a whole failed when it was last to be loaded
  std::map<int64_t, std::shared_ptr<const ModelVersion>> versions;
};

// All models at one moment. Immutable: replaced as a whole.
struct Directory {
  std::map<std::string, std::shared_ptr<const ModelEntry>, std::less<>> models;
  bool complete = false;  // the repositories have been scanned: what is not here does not exist
  bool accepting = true;  // false from SIGTERM on: readiness is false, requests are still served
};

// Somebody who keeps a snapshot, such as a worker.
class DirectoryFollower {
 public:
  virtual ~DirectoryFollower() = default;
  // Takes up the newest directory on the follower's own thread, then calls `done` there. Any
  // thread.
  virtual void follow(std::move_only_function<void()> done) = 0;
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
