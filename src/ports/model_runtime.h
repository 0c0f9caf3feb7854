#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "domain/end_reason.h"
#include "domain/model.h"
#include "domain/request.h"

namespace baton::ports {

struct RunFailure {
  bool terminated = false;  // by terminate(); not the model's fault
  std::string message{};    // for the client alone: it may hold values of its request
};

struct RunTimes {
  Instant computed_from;  // inputs gathered, the model starts
  Instant computed_to;
};

struct BatchResult {
  std::vector<InferResult>
      results;  // one a member, in order, holding the outputs that the member asked for
  RunTimes times;
};

// One instance of a loaded model: its own buffers over the shared weights. One thread at a time,
// except terminate().
class RuntimeInstance {
 public:
  virtual ~RuntimeInstance() = default;
  // Runs one batch on the calling thread and blocks until it is done. Members are not empty and
  // share a layout (same_layout); inputs are joined along the first dimension when there are
  // several.
  virtual Result<BatchResult, RunFailure> run(std::span<const InferRequest* const> members) = 0;
  // Makes a run in progress return soon with `terminated`. Any thread. Affects no later run.
  virtual void terminate() = 0;
};

// One loaded model version. Instances must not outlive it. Any thread.
class ModelRuntime {
 public:
  virtual ~ModelRuntime() = default;
  [[nodiscard]] virtual const ModelSignature& signature() const = 0;
  // What the operator should know of how it was loaded, a sentence each.
  [[nodiscard]] virtual std::vector<std::string> remarks() const { return {}; }
  virtual Result<std::unique_ptr<RuntimeInstance>, LoadFailure> create_instance(
      const ModelConfig& config) = 0;
};

// Opens model files. Blocks for as long as it takes: called on loader threads only.
class RuntimeLoader {
 public:
  virtual ~RuntimeLoader() = default;
  virtual Result<std::unique_ptr<ModelRuntime>, LoadFailure> load(
      const std::string& file, const RuntimeOptions& options) = 0;
  // Gives memory that was freed back to the system, after a model has gone. Any thread but a
  // worker's.
  virtual void give_back_memory() {}
  // Of the library that executes models: what was measured with one does not hold for another.
  [[nodiscard]] virtual std::string version() const = 0;
};

}  // namespace baton::ports
