#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "domain/latency_curve.h"
#include "domain/model.h"
#include "ports/engine.h"
#include "ports/model_runtime.h"
#include "ports/state_store.h"

namespace baton::ports {

// A model version that is loaded and warmed up on every instance.
struct LoadedVersion {
  int64_t version = 0;
  ModelConfig config;  // complete, encoded
  std::shared_ptr<ModelRuntime> runtime;
  std::vector<std::unique_ptr<RuntimeInstance>> instances;  // destroyed before the runtime
  LatencyCurve curve;                                       // empty: not measured
  CurveKey curve_key;                                       // under which its curve is kept
  bool steady_runs = false;          // a run's time depends on its rows alone
  std::vector<std::string> remarks;  // what the operator should know
};

// How the number of an engine's instances is changed while it serves.
struct InstanceControl {
  std::shared_ptr<ModelRuntime> runtime;  // makes more of them
  // Those that are warmed up join; then all but `count` leave, each when its run ends. Once, on a
  // thread that may block.
  std::move_only_function<void(std::vector<std::unique_ptr<RuntimeInstance>> more, uint32_t count)>
      resize;
};

// Puts loaded versions behind engines, and takes engines out of service. Called on the controller
// thread.
class EngineFactory {
 public:
  virtual ~EngineFactory() = default;
  virtual std::shared_ptr<EnginePort> make(LoadedVersion loaded) = 0;
  // Of an engine that serves; it is not withdrawn before `resize` has returned.
  virtual InstanceControl instances_of(const std::shared_ptr<EnginePort>& engine) = 0;
  // An engine that nobody calls any more and that holds no call. What is returned ends its threads
  // and frees its model, on a thread that may block; the port itself may live on, empty.
  virtual std::move_only_function<void()> withdraw(const std::shared_ptr<EnginePort>& engine) = 0;
};

}  // namespace baton::ports
