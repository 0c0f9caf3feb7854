#pragma once

#include <string>

#include "adapters/load/load.h"
#include "app/bench_command.h"

namespace baton::app {

[[nodiscard]] std::string bench_text(const BenchOptions& options,
                                     const adapters::load::LoadResult& result);
[[nodiscard]] std::string bench_json(const BenchOptions& options,
                                     const adapters::load::LoadResult& result);

}  // namespace baton::app
