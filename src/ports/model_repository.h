#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "domain/model.h"

namespace baton::ports {

struct FoundModel {
  std::string name;                        // the folder's name
  std::string folder;                      // for the repository's own use
  std::optional<std::string> config_text;  // config.pbtxt
  std::vector<int64_t> versions;           // ascending; positive integers without leading zeros
  std::vector<std::string> ignored;        // entries of the folder that were passed over, and why
  std::string problem;                     // not empty: the model cannot be loaded, and why
  // Changes whenever a name, size or time of modification of a file does; hidden files and those
  // that editors leave beside a file do not count. Of the whole folder, and of each version: its
  // own files and what the versions share, config.pbtxt excepted.
  uint64_t stamp = 0;
  std::map<int64_t, uint64_t> version_stamps{};
  Duration unchanged{};                // since the last change of a file's state, when it was read
  std::shared_ptr<const void> keep{};  // of a staged model: its folder goes with the last copy
};

// The folders that hold models. Blocks; called on loader threads and by commands, never on a
// worker.
class ModelRepository {
 public:
  virtual ~ModelRepository() = default;
  // All models of all repositories, by name. A model that stands in two repositories is reported
  // with a problem.
  virtual Result<std::vector<FoundModel>, LoadFailure> scan() = 0;
  // One model of that name; nothing when there is none.
  virtual Result<std::optional<FoundModel>, LoadFailure> find(const std::string& name) = 0;
  // The names of all models, unread.
  virtual Result<std::vector<std::string>, LoadFailure> names() = 0;
  // A model of files that a client sent, by "<version>/<file>", in a private folder of its own.
  // Error: a name that is no version's file or lies outside, or no room.
  virtual Result<FoundModel, LoadFailure> stage(
      const std::string& name, const std::map<std::string, std::string>& files) = 0;
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
