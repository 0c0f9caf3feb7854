#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "domain/model.h"
#include "ports/clock.h"
#include "ports/log_sink.h"
#include "ports/model_runtime.h"

namespace baton::adapters::onnx {

struct OrtOptions {
  std::string library;  // path of libonnxruntime.so
  // A model whose execution provider is missing is loaded without it, with a remark; else it fails.
  bool cpu_when_missing = false;
};

// Opens the library and gives a loader of models, which keeps it open. `log` and `clock` outlive
// the loader. Error: a sentence that says which file was tried and why it is not usable.
[[nodiscard]] Result<std::unique_ptr<ports::RuntimeLoader>, LoadFailure> open_onnxruntime(
    const OrtOptions& options, ports::Log& log, const ports::Clock& clock);

}  // namespace baton::adapters::onnx
