#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ports/model_runtime.h"

namespace baton::ports::testing {

// Forwards every run and breaks the ones that a test names.
class FaultyRuntimeInstance final : public RuntimeInstance {
 public:
  enum class Fault : uint8_t {
    kNone,
    kFailsAlways,
    kFailsBatches,        // runs of more than one item
    kOnlyFirstItemRight,  // the first member's outputs are every member's (server#2135)
    kDifferentEachTime,   // the first output depends on how often it ran
  };
  explicit FaultyRuntimeInstance(std::unique_ptr<RuntimeInstance> inner)
      : inner_(std::move(inner)) {}

  void set(Fault fault) { fault_ = fault; }

  Result<BatchResult, RunFailure> run(std::span<const InferRequest* const> members) override {
    ++runs_;
    if (fault_ == Fault::kFailsAlways) return fail(RunFailure{.message = "index out of range"});
    if (fault_ == Fault::kFailsBatches && members.size() > 1) {
      return fail(RunFailure{.message = "invalid dimensions"});
    }
    auto outcome = inner_->run(members);
    if (!outcome) return outcome;
    if (fault_ == Fault::kOnlyFirstItemRight) {
      for (InferResult& result : outcome->results) result = outcome->results.front();
    }
    if (fault_ == Fault::kDifferentEachTime) spoil(outcome->results.front());
    return outcome;
  }
  void terminate() override { inner_->terminate(); }

 private:
  void spoil(InferResult& result) const {
    Tensor& tensor = result.outputs.front();
    auto copy = std::make_shared<std::vector<std::byte>>(tensor.data.begin(), tensor.data.end());
    copy->back() ^= static_cast<std::byte>(runs_ & 0x7f);
    tensor.data = *copy;
    result.storage.push_back(std::move(copy));
  }

  std::unique_ptr<RuntimeInstance> inner_;
  Fault fault_ = Fault::kNone;
  uint64_t runs_ = 0;
};

}  // namespace baton::ports::testing
