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
};

struct Route {
  RouteKind kind = RouteKind::kServerLive;
  std::string model;               // percent-decoded; empty where the route names none
  std::optional<int64_t> version;  // absent: the highest ready one
};

// Resolves a request line. Errors: kNotFound for an unknown path, kMethodNotAllowed for a known
// path with another method, kInvalid for a version that is not a positive integer or a path that
// does not decode.
[[nodiscard]] Result<Route, Refusal> parse_route(std::string_view method, std::string_view target);

}  // namespace baton::protocol::oip
