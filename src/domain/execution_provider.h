#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace baton {

// What runs a session's nodes before the CPU does.
enum class ProviderKind : uint8_t { kCuda, kTensorRt };

[[nodiscard]] constexpr std::string_view provider_name(ProviderKind kind) {
  return kind == ProviderKind::kCuda ? "CUDA" : "TensorRT";
}

struct ExecutionProvider {
  ProviderKind kind = ProviderKind::kCuda;
  std::map<std::string, std::string> options{};  // in ONNX Runtime's names
  bool operator==(const ExecutionProvider&) const = default;
};

}  // namespace baton
