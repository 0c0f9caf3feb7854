#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ports/clock.h"
#include "ports/engine_factory.h"
#include "ports/job_runner.h"
#include "ports/model_repository.h"
#include "ports/model_runtime.h"
#include "ports/state_store.h"

namespace baton::service {

// What loading needs; all of it is safe to use from several loader threads.
struct LoadPorts {
  ports::ModelRepository& repository;
  ports::RuntimeLoader& runtime;
  const ports::Clock& clock;
  ports::StateStore* store = nullptr;  // null: curves are measured at every start
};

struct LoadRequest {
  ports::FoundModel model;
  int64_t version = 0;
  std::optional<ModelConfig> config;  // absent: derived from the file
};

struct OpenedVersion {
  ModelConfig config;  // complete, not yet encoded
  std::string file;
  std::unique_ptr<ports::ModelRuntime> runtime;
  std::map<std::string, std::string> warmup_files;  // contents by name
  std::vector<std::string> remarks;                 // what the operator should know
};

inline constexpr std::string_view kLoadingStopped =
    "its loading was stopped: the server is shutting down";

// Opens the model file, completes the configuration against it and reads its warm-up files. Blocks:
// a loader thread, or a command.
[[nodiscard]] Result<OpenedVersion, LoadFailure> open_version(const LoadPorts& ports,
                                                              const LoadRequest& request);

// Opens, makes the instances and warms each of them up. `on_warming` is called between loading and
// warming. Blocks; when it is cancelled it fails with kLoadingStopped after the step that it is at,
// or in the middle of a run.
[[nodiscard]] Result<ports::LoadedVersion, LoadFailure> load_version(
    const LoadPorts& ports, const LoadRequest& request, const std::function<void()>& on_warming,
    ports::Cancellation& cancellation);

// An engine that serves and is to have another number of instances.
struct ScaleRequest {
  LoadRequest load;    // as the plan has it: with the number that is wanted
  ModelConfig served;  // complete
  LatencyCurve curve;  // as refined so far
};
struct ScaledVersion {
  ModelConfig config;  // complete, encoded
  ports::CurveKey curve_key;
};

// Makes what is missing, warms it up, and has the engine take it or let go of what is too much.
// Blocks, on a loader thread; cancelled as load_version() is.
[[nodiscard]] Result<ScaledVersion, LoadFailure> scale_version(const LoadPorts& ports,
                                                               const ScaleRequest& request,
                                                               ports::InstanceControl& control,
                                                               ports::Cancellation& cancellation);

}  // namespace baton::service
