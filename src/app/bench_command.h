#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace baton::app {

struct BenchOptions {
  std::string model;
  std::string url = "127.0.0.1:8000";
  std::string grpc;                  // not empty: over gRPC, to this address
  std::string arrivals = "poisson";  // constant, poisson, or a trace's file
  double rate = 0;                   // requests a second; 0: 100, or a trace's own
  double seconds = 10;               // that are counted
  double warmup_seconds = 1;         // before them
  double objective_seconds = 0;      // of goodput; 0: none
  uint32_t connections = 64;
  uint32_t outstanding = 4096;
  std::vector<std::string> shapes;  // input=1,3,224,224
  int64_t rows = 1;                 // of the batch dimension, where the model has one
  uint64_t seed = 1;
  bool as_json = false;
};

// Sends open-loop load to a server that speaks the Open Inference Protocol and reports what came
// back. The exit status: 0 when nothing failed, 1 when a request or the measurement did,
// 2 when the options are wrong.
int run_bench(const BenchOptions& options);

}  // namespace baton::app
