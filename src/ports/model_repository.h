#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "domain/model.h"

namespace baton::ports {

struct FoundModel {
  std::string name;                        // the folder's name
  std::string folder;                      // for the repository's own use
  std::optional<std::string> config_text;  // config.pbtxt
  std::vector<int64_t> versions;           // ascending; positive integers without leading zeros
  std::vector<std::string> ignored;        // entries of the folder that were passed over, and why
  std::string problem;                     // not empty: the model cannot be loaded, and why
};

// The folders that hold models. Blocks; called on loader threads and by commands, never on a
// worker.
class ModelRepository {
 public:
  virtual ~ModelRepository() = default;
  // All models of all repositories, by name. A model that stands in two repositories is reported
  // with a problem.
  virtual Result<std::vector<FoundModel>, LoadFailure> scan() = 0;
  // The path of a version's model file. Error: names what is missing, relative to the model's
  // folder.
  virtual Result<std::string, LoadFailure> model_file(const FoundModel& model, int64_t version,
                                                      const std::string& file_name) = 0;
  // A file below the model's folder, at most `max_bytes` long. `name` with ".." or a leading slash
  // is refused.
  virtual Result<std::string, LoadFailure> read_file(const FoundModel& model,
                                                     const std::string& name, size_t max_bytes) = 0;
  // Changes whenever the file may have: of its size and time of modification.
  virtual std::string fingerprint(const std::string& path) = 0;
};

}  // namespace baton::ports
