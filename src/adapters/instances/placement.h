#pragma once

#include <string>
#include <vector>

#include "adapters/instances/instance_engine.h"

namespace baton::adapters {

// Names the calling thread, pins it when `cpu` is not negative, and reads back where it may run.
[[nodiscard]] Placement place_this_thread(const std::string& name, int cpu);

}  // namespace baton::adapters
