#pragma once
// What clients may ask of the models that are served: an index, loading, unloading.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "domain/end_reason.h"
#include "ports/executor.h"

namespace baton::ports {

struct ModelIndexRow {
  std::string name;
  std::string version;  // empty where no version is known
  std::string state;    // READY, LOADING, UNLOADING or UNAVAILABLE
  std::string reason;
};

struct LoadCommand {
  std::string model;
  // That one alone, whatever the version policy picks; the others stay as they are.
  std::optional<int64_t> version;
  std::optional<std::string> config;  // JSON of an inference.ModelConfig, instead of config.pbtxt
  // By "<version>/<file>", instead of those of the model's folder; only with `config`.
  std::map<std::string, std::string> files;
};

struct UnloadCommand {
  std::string model;
  std::optional<int64_t> version;  // that one alone
};

// Any thread. Each `done` is called once on `home`, never from within the call; it is dropped
// uncalled when the process ends first. Commands of one model are carried out in order, one at a
// time; those of several models side by side.
class RepositoryControl {
 public:
  virtual ~RepositoryControl() = default;
  using Done = std::move_only_function<void(Result<void, Refusal>)>;
  using IndexDone = std::move_only_function<void(Result<std::vector<ModelIndexRow>, Refusal>)>;
  virtual void index(bool ready_only, Executor& home, IndexDone done) = 0;
  // Done when every version that is to serve does. Errors: kNotReady where the control mode does
  // not allow it, kInvalid for a model that is not found or does not load (what served before
  // serves on), kOverloaded, kShuttingDown.
  virtual void load(LoadCommand command, Executor& home, Done done) = 0;
  // Done when no new request reaches it; what it has is served on. Error: also kInvalid for a model
  // or version that was never served.
  virtual void unload(UnloadCommand command, Executor& home, Done done) = 0;
};

}  // namespace baton::ports
