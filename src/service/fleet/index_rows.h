#pragma once

#include <string>
#include <vector>

#include "ports/model_directory.h"
#include "ports/repository_control.h"

namespace baton::service {

// One row a version, by name and version; one for a model that has none. `names`: models of the
// repositories, served or not.
[[nodiscard]] std::vector<ports::ModelIndexRow> index_rows(const ports::Directory& directory,
                                                           const std::vector<std::string>& names,
                                                           bool ready_only);

}  // namespace baton::service
