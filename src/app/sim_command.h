#pragma once

#include <cstdint>
#include <string>

namespace baton::app {

struct SimOptions {
  std::string scenario = "steady";
  uint64_t seed = 1;
  double seconds = 0;  // 0: the scenario's own length
  std::string fault;   // of the planted ones; empty: none
  bool as_json = false;
};

// Runs one simulated scenario. Exit status: 0 when every invariant held, 1 when one was broken, 2
// for an unknown name.
[[nodiscard]] int run_sim(const SimOptions& options);

}  // namespace baton::app
