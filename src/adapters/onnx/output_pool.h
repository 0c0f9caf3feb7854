#pragma once
// Buffers that runs write their outputs to. For the files of this room only.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "adapters/onnx/ort_handles.h"
#include "domain/model.h"

namespace baton::adapters::onnx {

// The outputs of one run, at shapes that are known before it.
struct OutputSet {
  uint64_t number = 0;  // unique within its pool
  uint64_t rows = 0;
  std::vector<const TensorSpec*> specs;
  std::vector<std::vector<std::byte>> buffers;
  std::vector<OrtOwned<OrtValue>> values;
  std::vector<Tensor> tensors;  // views of the buffers
};

// Sets that answers have let go of serve later runs of the same shapes. take() and make() on the
// instance's thread, a lease ends on any; the pool outlives its leases.
class OutputPool : public std::enable_shared_from_this<OutputPool> {
 public:
  OutputPool(const OrtApi& api, const OrtMemoryInfo* cpu) : api_(api), cpu_(cpu) {}

  // Null when there is no free set of these outputs and rows.
  std::unique_ptr<OutputSet> take(const std::vector<const TensorSpec*>& specs, uint64_t rows);
  // Null with `error`, or when the outputs are too large to be kept.
  std::unique_ptr<OutputSet> make(const std::vector<const TensorSpec*>& specs, uint64_t rows,
                                  std::string& error);
  // Comes back to the pool when the last copy is gone.
  Storage lease(std::unique_ptr<OutputSet> set);

 private:
  void give_back(std::unique_ptr<OutputSet> set);

  const OrtApi& api_;
  const OrtMemoryInfo* cpu_;
  uint64_t made_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<OutputSet>> free_;  // under mutex_; the last one came back last
};

// Whether an output's shape follows from the number of rows alone.
[[nodiscard]] bool has_known_shape(const TensorSpec& spec, bool batches);

}  // namespace baton::adapters::onnx
