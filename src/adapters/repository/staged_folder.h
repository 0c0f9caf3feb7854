#pragma once
// Files that a client sent, in a private folder that goes with its last user. For the files of this
// room.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "domain/model.h"

namespace baton::adapters::repository {

// A positive integer without leading zeros.
[[nodiscard]] std::optional<int64_t> parse_version(const std::string& name);
// A relative path without "..".
[[nodiscard]] bool is_inside(const std::string& name);

struct StagedFolder {
  std::filesystem::path path;
  std::shared_ptr<const void> keep;  // removes the folder
};

// Writes files by "<version>/<file>" below a new folder that nobody else may enter, in TMPDIR or
// /tmp. Error: a name of another form, or what the system says.
[[nodiscard]] Result<StagedFolder, LoadFailure> stage_files(
    const std::map<std::string, std::string>& files);

}  // namespace baton::adapters::repository
