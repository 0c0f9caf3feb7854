#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "ports/state_store.h"

namespace baton::adapters::sqlite {

// Opens or creates the state file. Any thread may use the store; calls wait for each other.
// Errors: a file that is no database, of a newer schema, or that cannot be written.
[[nodiscard]] Result<std::unique_ptr<ports::StateStore>, ports::StoreFailure> open_sqlite_store(
    const std::string& path);

}  // namespace baton::adapters::sqlite
