#pragma once
// ONNX Runtime's own Run() and nothing around it: what no server can be faster than.

#include <memory>
#include <string>

namespace bench {

// The add model (two INT32 [N,16] in, two out) with one row, one thread, prepared tensors.
class BareRun {
 public:
  explicit BareRun(const std::string& onnx);
  ~BareRun();
  BareRun(const BareRun&) = delete;
  BareRun& operator=(const BareRun&) = delete;
  void run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bench
