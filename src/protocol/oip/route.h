#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "domain/end_reason.h"

namespace baton::protocol::oip {

enum class RouteKind : uint8_t {
  kLivez,
  kReadyz,
  kServerLive,
  kServerReady,
  kServerMetadata,
  kModelMetadata,
  kModelReady,
  kModelConfig,
  kModelInfer,
  kModelStatistics,
  kRepositoryIndex,
  kLogSettings,
  kUpdateLogSettings,
  kTraceSettings,  // of Route::model, or of the server
  kUpdateTraceSettings,
  kMemoryStatus,  // these in this order: Route::model names the region
  kMemoryRegister,
  kMemoryRemove,
  kCudaMemoryStatus,
  kCudaMemoryRegister,
  kCudaMemoryRemove,
  kRepositoryLoad,
  kRepositoryUnload,
};

struct Route {
  RouteKind kind = RouteKind::kServerLive;
  std::string model;               // or region; percent-decoded; empty where the route names none
  std::string repository;          // of repository routes, where the path names one
  std::optional<int64_t> version;  // absent: the highest ready one
};

// Resolves a request line; HEAD is taken where GET is. Errors: kNotFound for an unknown path,
// kMethodNotAllowed for a known path with another method, kInvalid for a version that is not a
// positive integer or a path that does not decode.
[[nodiscard]] Result<Route, Refusal> parse_route(std::string_view method, std::string_view target);
// What an `Allow` header says of a known path: "GET, HEAD" or "POST".
[[nodiscard]] std::string_view allowed_methods(std::string_view target);
// Of the server's own health, with or without a slash at its end: answered without a key, since
// probes have none.
[[nodiscard]] bool is_health_path(std::string_view target);

}  // namespace baton::protocol::oip
