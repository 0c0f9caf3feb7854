#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace baton::app {

struct OptimizeOptions {
  std::string model;
  int64_t version = 0;  // 0: the highest
  std::vector<std::string> repositories;
  std::string kind;                 // fp16 or int8
  std::string inputs;               // a folder of .npz files, each a request; empty: made up
  std::vector<std::string> shapes;  // of what is made up: input=1,3,224,224
  std::string out;                  // a repository; empty: the model's own
  std::string python = "python3";   // with onnx and onnxruntime
  uint64_t seed = 1;
  double most_difference = -1;  // of an output, as a share of its largest value; negative: no bound
  bool replace = false;
  bool as_json = false;
};

// Makes MODEL_fp16 or MODEL_int8 beside a model by ONNX Runtime's Python tools, in a process of its
// own, and prints how they compare. The exit status: 0 when it was made, 1 when it cannot be made
// or differs too much, 2 when an option or a file that it names is wrong.
[[nodiscard]] int run_optimize(const OptimizeOptions& options);

}  // namespace baton::app
