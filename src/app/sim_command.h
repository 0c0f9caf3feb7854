#pragma once

#include <cstdint>
#include <string>

namespace baton::app {

struct SimOptions {
  std::string scenario = "steady";
  uint64_t seed = 1;
  double seconds = 0;     // 0: the scenario's own length
  std::string fault;      // of the planted ones; empty: none
  std::string decisions;  // where the decision log is written; empty: nowhere
  bool as_json = false;
};

// Runs one simulated scenario. Exit status: 0 when every invariant held, 1 when one was broken, 2
// for an unknown name.
[[nodiscard]] int run_sim(const SimOptions& options);

// Replays a decision log and compares what is decided. Exit status: 0 equal, 1 a difference, 2 no
// decision log, 3 records are missing.
[[nodiscard]] int run_replay(const std::string& path, bool as_json);

}  // namespace baton::app
