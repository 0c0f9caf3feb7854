#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace baton::app {

struct InferOptions {
  std::string model;
  int64_t version = 0;  // 0: the highest ready one
  std::string url = "127.0.0.1:8000";
  std::string json;                 // a request or named arrays: "-", a text or a file; or empty
  std::vector<std::string> inputs;  // name=file.npy
  bool zeros = false;               // make the inputs that are not given
  bool random = false;
  std::vector<std::string> shapes;  // of those: input=1,3,224,224
  uint64_t seed = 1;
  std::string save;  // a folder for the outputs; empty: none
  double timeout_seconds = 60;
  std::string api_key;  // empty: none
  bool as_json = false;
};

// Calls a model once and prints its outputs. The exit status: 0 when it answered, 1 when the server
// refused or did not answer or its outputs cannot be saved, 2 when an option or a file that it
// names is wrong.
[[nodiscard]] int run_infer(const InferOptions& options);

}  // namespace baton::app
