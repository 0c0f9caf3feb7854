#include "protocol/oip/route.h"

#include <array>
#include <charconv>
#include <span>

namespace baton::protocol::oip {
namespace {

constexpr size_t kMostSegments = 8;

struct FixedRoute {
  std::string_view path;
  std::string_view method;
  RouteKind kind;
};
constexpr std::array<FixedRoute, 10> kFixed = {
    {{"livez", "GET", RouteKind::kLivez},
     {"readyz", "GET", RouteKind::kReadyz},
     {"v2/health/live", "GET", RouteKind::kServerLive},
     {"v2/health/ready", "GET", RouteKind::kServerReady},
     {"v2", "GET", RouteKind::kServerMetadata},
     {"v2/models/stats", "GET", RouteKind::kModelStatistics},
     {"v2/logging", "GET", RouteKind::kLogSettings},
     {"v2/logging", "POST", RouteKind::kUpdateLogSettings},
     {"v2/trace/setting", "GET", RouteKind::kTraceSettings},
     {"v2/trace/setting", "POST", RouteKind::kUpdateTraceSettings}}};

struct ModelRoute {
  std::string_view suffix;
  std::string_view method;
  RouteKind kind;
};
constexpr std::array<ModelRoute, 5> kModelRoutes = {{{"", "GET", RouteKind::kModelMetadata},
                                                     {"ready", "GET", RouteKind::kModelReady},
                                                     {"config", "GET", RouteKind::kModelConfig},
                                                     {"stats", "GET", RouteKind::kModelStatistics},
                                                     {"infer", "POST", RouteKind::kModelInfer}}};

struct MemoryRoute {
  std::string_view suffix;
  std::string_view method;
  RouteKind system;
  RouteKind cuda;
  bool for_all;  // also without a region
};
constexpr std::array<MemoryRoute, 3> kMemoryRoutes = {
    {{"status", "GET", RouteKind::kMemoryStatus, RouteKind::kCudaMemoryStatus, true},
     {"register", "POST", RouteKind::kMemoryRegister, RouteKind::kCudaMemoryRegister, false},
     {"unregister", "POST", RouteKind::kMemoryRemove, RouteKind::kCudaMemoryRemove, true}}};

Refusal not_found() {
  return {EndReason::kNotFound, "Not Found", {}};
}

Refusal wrong_method(std::string_view wanted) {
  return {EndReason::kMethodNotAllowed, "this route takes " + std::string(wanted), {}};
}

bool takes(std::string_view wanted, std::string_view method) {
  return method == wanted || (wanted == "GET" && method == "HEAD");
}

// Without query, leading slash and slashes at its end; nothing when it does not begin with a slash.
std::optional<std::string_view> path_of(std::string_view target) {
  std::string_view path = target.substr(0, target.find('?'));
  if (path.empty() || path.front() != '/') return std::nullopt;
  path.remove_prefix(1);
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  return path;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Nothing when an escape is malformed or decodes to NUL.
std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

// What is behind kMostSegments is no route and is left out, one segment excepted.
struct Segments {
  std::array<std::string_view, kMostSegments + 1> parts;
  size_t count = 0;
  [[nodiscard]] std::span<const std::string_view> view() const { return {parts.data(), count}; }
};

Segments split(std::string_view path) {
  Segments segments;
  while (segments.count < segments.parts.size()) {
    const size_t slash = path.find('/');
    segments.parts[segments.count++] = path.substr(0, slash);
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return segments;
}

Result<int64_t, Refusal> parse_version(std::string_view text) {
  int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size() || version < 1) {
    return fail(Refusal{EndReason::kInvalid, "a model version is a positive integer", {}});
  }
  return version;
}

Result<Route, Refusal> parse_model_route(std::string_view method,
                                         std::span<const std::string_view> parts) {
  Route route;
  auto name = percent_decode(parts[0]);
  if (!name || name->empty()) return fail(not_found());
  route.model = std::move(*name);
  if (parts.size() == 3 && parts[1] == "trace" && parts[2] == "setting") {
    route.kind = method == "POST" ? RouteKind::kUpdateTraceSettings : RouteKind::kTraceSettings;
    if (method != "POST" && !takes("GET", method)) return fail(wrong_method("GET"));
    return route;
  }
  size_t next = 1;
  if (parts.size() >= 3 && parts[1] == "versions") {
    BATON_ASSIGN(route.version, parse_version(parts[2]));
    next = 3;
  }
  if (parts.size() > next + 1) return fail(not_found());
  const std::string_view suffix = parts.size() > next ? parts[next] : std::string_view();
  for (const ModelRoute& candidate : kModelRoutes) {
    if (candidate.suffix != suffix) continue;
    if (!takes(candidate.method, method)) return fail(wrong_method(candidate.method));
    route.kind = candidate.kind;
    return route;
  }
  return fail(not_found());
}

// [region/NAME/]SUFFIX
Result<Route, Refusal> parse_memory_route(std::string_view method, bool cuda,
                                          std::span<const std::string_view> parts) {
  Route route;
  const bool named = parts.size() == 3 && parts[0] == "region";
  if (named) {
    auto name = percent_decode(parts[1]);
    if (!name || name->empty()) return fail(not_found());
    route.model = std::move(*name);
  }
  if (!named && parts.size() != 1) return fail(not_found());
  for (const MemoryRoute& candidate : kMemoryRoutes) {
    if (candidate.suffix != parts.back() || (!named && !candidate.for_all)) continue;
    if (!takes(candidate.method, method)) return fail(wrong_method(candidate.method));
    route.kind = cuda ? candidate.cuda : candidate.system;
    return route;
  }
  return fail(not_found());
}

// What stands behind v2/repository: [repo/]index, [repo/]models/NAME/load and /unload.
Result<Route, Refusal> parse_repository_route(std::string_view method,
                                              std::span<const std::string_view> parts) {
  Route route;
  const auto is_command = [](std::span<const std::string_view> rest) {
    return rest.size() == 3 && rest[0] == "models" && (rest[2] == "load" || rest[2] == "unload");
  };
  const auto is_index = [](std::span<const std::string_view> rest) {
    return rest.size() == 1 && rest[0] == "index";
  };
  if (!is_command(parts) && !is_index(parts) && parts.size() > 1) {
    auto repository = percent_decode(parts.front());
    if (!repository || repository->empty()) return fail(not_found());
    route.repository = std::move(*repository);
    parts = parts.subspan(1);
  }
  if (is_index(parts)) {
    route.kind = RouteKind::kRepositoryIndex;
  } else if (is_command(parts)) {
    auto name = percent_decode(parts[1]);
    if (!name || name->empty()) return fail(not_found());
    route.model = std::move(*name);
    route.kind = parts[2] == "load" ? RouteKind::kRepositoryLoad : RouteKind::kRepositoryUnload;
  } else {
    return fail(not_found());
  }
  if (!takes("POST", method)) return fail(wrong_method("POST"));
  return route;
}

}  // namespace

Result<Route, Refusal> parse_route(std::string_view method, std::string_view target) {
  const auto path = path_of(target);
  if (!path) return fail(not_found());
  std::string_view wanted;
  for (const FixedRoute& fixed : kFixed) {
    if (fixed.path != *path) continue;
    wanted = fixed.method;
    if (!takes(fixed.method, method)) continue;
    Route route;
    route.kind = fixed.kind;
    return route;
  }
  if (!wanted.empty()) return fail(wrong_method(wanted));
  const Segments segments = split(*path);
  const auto parts = segments.view();
  if (parts.size() >= 3 && parts[0] == "v2" && parts[1] == "models") {
    return parse_model_route(method, parts.subspan(2));
  }
  const bool cuda = parts.size() >= 3 && parts[1] == "cudasharedmemory";
  if (parts.size() >= 3 && parts[0] == "v2" && (cuda || parts[1] == "systemsharedmemory")) {
    return parse_memory_route(method, cuda, parts.subspan(2));
  }
  if (parts.size() >= 3 && parts[0] == "v2" && parts[1] == "repository") {
    return parse_repository_route(method, parts.subspan(2));
  }
  return fail(not_found());
}

std::string_view allowed_methods(std::string_view target) {
  const bool gets = parse_route("GET", target).has_value();
  if (!gets) return "POST";
  return parse_route("POST", target).has_value() ? "GET, HEAD, POST" : "GET, HEAD";
}

bool is_health_path(std::string_view target) {
  const auto path = path_of(target);
  return path && (*path == "livez" || *path == "readyz" || path->starts_with("v2/health/"));
}

}  // namespace baton::protocol::oip
