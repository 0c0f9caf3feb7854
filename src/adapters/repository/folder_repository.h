#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ports/model_repository.h"

namespace baton::adapters::repository {

// Serves models from folders, searched in the order given.
[[nodiscard]] std::unique_ptr<ports::ModelRepository> make_folder_repository(
    std::vector<std::string> folders);

}  // namespace baton::adapters::repository
