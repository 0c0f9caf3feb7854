#include "domain/engine_kind.h"

#include <array>

namespace baton {

const EngineKindRow& engine_kind_row(EngineKind kind) {
  static constexpr std::array<EngineKindRow, 1> kRows = {
      {{EngineKind::kOnnx, "onnx", "onnxruntime_onnx", "onnxruntime", true}}};
  return kRows[static_cast<size_t>(kind)];
}

}  // namespace baton
