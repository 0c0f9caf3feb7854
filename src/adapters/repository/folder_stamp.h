#pragma once
// Tells whether the files of a model's folder changed. For the files of this room.

#include <filesystem>

#include "ports/model_repository.h"

namespace baton::adapters::repository {

// Hidden files and those that editors leave beside a file: they come and go without a change.
[[nodiscard]] bool is_beside(const std::string& name);

// Sets `stamp`, `version_stamps` of the versions that are there, and `unchanged`. Opens
// no file.
void read_stamps(const std::filesystem::path& folder, ports::FoundModel& model);

}  // namespace baton::adapters::repository
