#pragma once
// What an operator configures for the whole process. Every value has its default here;
// protocol/server_config reads it from YAML.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "domain/model.h"

namespace baton {

struct ListenConfig {
  std::string host = "127.0.0.1";  // numeric address
  uint16_t http_port = 8000;       // 0: a free one
  uint16_t grpc_port = 8001;
  uint16_t metrics_port = 8002;
  bool grpc = true;
};

// What the identifiers of HTTP exchanges can tell apart on one worker, less those being refused.
inline constexpr uint64_t kMostConnections = 900'000;

struct LimitsConfig {
  uint64_t max_body_bytes = 64ULL << 20;
  uint64_t max_connections = 4096;
  uint64_t max_in_flight = 8192;  // requests, whole server
  uint64_t max_in_flight_bytes = 2ULL << 30;
  uint64_t max_answer_bytes = 1ULL << 30;     // that clients have not taken yet, whole server
  Duration write_stall = Duration::s(20);     // in which a client takes some of its answer
  QueueLimits queue;                          // of each model version
  uint64_t max_shared_memory_bytes = 0;       // of all registered regions; 0: not offered
  Duration priority_ageing = Duration::s(1);  // how long a level may be overtaken by the one above
  Duration max_timeout = Duration::s(3600);   // of a request without a deadline, and the longest
};

struct ShutdownConfig {
  Duration lame_duck = Duration::s(5);  // after SIGTERM: not ready, still serving
  Duration drain = Duration::s(30);     // then: time for what is in flight
  Duration stop = Duration::s(10);      // then: for steps that cannot be cut off; after it, killed
};

struct LogConfig {
  std::string access;          // path, "-" for standard output, empty: off
  std::string level = "info";  // debug, info, warning, error
  std::string decisions;       // path of a decision log; empty: the ring in memory only
};

struct TraceConfig {
  std::string file;  // empty: the trace extension is not offered
};

// Who decides which models are served: their folders as they are at the start (kNone), as they are
// while serving (kPoll), or clients (kExplicit).
enum class ControlMode : uint8_t { kNone, kExplicit, kPoll };

struct RepositoryConfig {
  ControlMode control = ControlMode::kNone;
  std::vector<std::string> startup_models;  // kExplicit: by name; "*": all that are there
  Duration poll_every = Duration::s(15);
  Duration settle = Duration::s(2);  // kPoll: a folder is read once it is unchanged for so long
};

struct ServerConfig {
  ListenConfig listen;
  std::vector<std::string> repositories;
  RepositoryConfig repository;
  std::optional<std::set<std::string>> required_models;  // absent: every model
  bool warn_unsupported = false;
  uint32_t workers = 0;      // gateway workers; 0: one for every two CPUs, at least one
  uint32_t cpu_permits = 0;  // model runs at a time; 0: the number of CPUs
  uint32_t loader_threads = 2;
  bool pin_instances = false;
  LimitsConfig limits;
  ShutdownConfig shutdown;
  LogConfig log;
  TraceConfig trace;
  std::vector<std::string> forward_headers;  // that HeaderPatterns takes
  std::string api_keys_file;                 // lines "KEY TENANT"; empty: everybody is let in
  std::string state_file;                    // SQLite; empty: nothing is kept
  bool cpu_when_provider_missing = false;
  std::string ort_library;  // empty: searched beside the binary, then by the loader's rules
  std::map<std::string, std::string> given;  // the keys that were set, by path, and to what
};

}  // namespace baton
