#pragma once
// What each kind of engine can do, as a table. What differs between kinds is a row here or a
// mapping in protocol/.

#include <cstdint>
#include <string_view>

namespace baton {

enum class EngineKind : uint8_t { kOnnx };

struct EngineKindRow {
  EngineKind kind;
  std::string_view name;
  std::string_view platform;  // as model metadata says it
  std::string_view backend;   // as config.pbtxt says it
  bool in_process;
};

[[nodiscard]] const EngineKindRow& engine_kind_row(EngineKind kind);

}  // namespace baton
