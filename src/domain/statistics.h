#pragma once
// What clients may read of a model version's work, cumulative since the process began to serve it.

#include <cstdint>
#include <string>
#include <vector>

namespace baton {

struct StageTotal {
  uint64_t count = 0;
  uint64_t ns = 0;
};

// The runs of one batch size.
struct BatchSizeTotals {
  uint64_t items = 0;  // rows of each run
  uint64_t runs = 0;   // that ended well
  uint64_t input_ns = 0;
  uint64_t infer_ns = 0;
  uint64_t output_ns = 0;
};

struct ModelStatistics {
  std::string model{};
  int64_t version = 0;
  int64_t last_inference_ms = 0;  // since 1970: arrival of the newest request that ended; 0: none
  uint64_t items = 0;             // rows of successful requests
  uint64_t executions = 0;        // runs of the model
  StageTotal success{};           // arrival to answer
  StageTotal fail{};              // the same, of requests that ended in any other way
  StageTotal queue{};             // this and what follows: of successes
  StageTotal compute_input{};
  StageTotal compute_infer{};
  StageTotal compute_output{};
  std::vector<BatchSizeTotals> batches{};  // by size, ascending
};

}  // namespace baton
