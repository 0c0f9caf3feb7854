#pragma once

#include <string_view>

namespace baton::app {

// optimize_model.py, which the build puts into the program.
extern const std::string_view kOptimizeScript;

}  // namespace baton::app
