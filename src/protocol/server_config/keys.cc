#include "protocol/server_config/keys.h"

#include <algorithm>
#include <limits>

#include "domain/forwarded_headers.h"

namespace baton::protocol::server_config {
namespace {

uint64_t number(const KeyValue& value) {
  return std::get<uint64_t>(value);
}
const std::string& text(const KeyValue& value) {
  return std::get<std::string>(value);
}
const std::vector<std::string>& list(const KeyValue& value) {
  return std::get<std::vector<std::string>>(value);
}

constexpr uint64_t kHourMs = 3'600'000;
constexpr uint64_t kDayMs = 86'400'000;
constexpr uint64_t kTiB = 1ULL << 40;

std::vector<Key> make_listen_keys() {
  return {
      {"listen.host", KeyType::kText, "127.0.0.1", "Numeric address to listen on.",
       [](ServerConfig& c, const KeyValue& v) { c.listen.host = text(v); }},
      {"listen.http", KeyType::kInteger, "8000", "Port of the REST API; 0 picks a free one.",
       [](ServerConfig& c, const KeyValue& v) {
         c.listen.http_port = static_cast<uint16_t>(number(v));
       },
       0, 65535},
      {"listen.grpc", KeyType::kInteger, "8001", "Port of the gRPC API; 0 picks a free one.",
       [](ServerConfig& c, const KeyValue& v) {
         c.listen.grpc_port = static_cast<uint16_t>(number(v));
       },
       0, 65535},
      {"listen.metrics", KeyType::kInteger, "8002", "Port of the metrics; 0 picks a free one.",
       [](ServerConfig& c, const KeyValue& v) {
         c.listen.metrics_port = static_cast<uint16_t>(number(v));
       },
       0, 65535},
      {"listen.grpc_enabled", KeyType::kBoolean, "true", "Whether gRPC is served at all.",
       [](ServerConfig& c, const KeyValue& v) { c.listen.grpc = std::get<bool>(v); }},
  };
}

std::vector<Key> make_model_keys() {
  return {
      {"repositories", KeyType::kTextList, "none",
       "Folders of models; a model that stands in two of them fails.",
       [](ServerConfig& c, const KeyValue& v) { c.repositories = list(v); }},
      {"required_models", KeyType::kTextList, "every model",
       "Models that readiness waits for; an empty list: none.",
       [](ServerConfig& c, const KeyValue& v) {
         c.required_models = std::set<std::string>(list(v).begin(), list(v).end());
       }},
      {"unsupported",
       KeyType::kChoice,
       "refuse",
       "A field of config.pbtxt that is not honoured fails its model, or is reported and ignored.",
       [](ServerConfig& c, const KeyValue& v) { c.warn_unsupported = text(v) == "warn"; },
       0,
       0,
       {"refuse", "warn"}},
      {"state_file", KeyType::kText, "none",
       "SQLite file that keeps measured curves over restarts.",
       [](ServerConfig& c, const KeyValue& v) { c.state_file = text(v); }},
      {"ort_library", KeyType::kText, "searched", "Path of ONNX Runtime's shared library.",
       [](ServerConfig& c, const KeyValue& v) { c.ort_library = text(v); }},
      {"missing_provider",
       KeyType::kChoice,
       "fail",
       "A model whose execution provider (CUDA, TensorRT) ONNX Runtime cannot use here fails, or "
       "runs "
       "on the CPU and says so in the log.",
       [](ServerConfig& c, const KeyValue& v) { c.cpu_when_provider_missing = text(v) == "cpu"; },
       0,
       0,
       {"fail", "cpu"}},
      {"api_keys_file", KeyType::kText, "none",
       "File of `KEY TENANT` lines, `#` begins a comment line; with it every request needs a key "
       "but "
       "these: REST `/livez`, `/readyz`, `/v2/health/*`; gRPC `ServerLive`, `ServerReady` and the "
       "health service; of the metrics port all but `/models`.",
       [](ServerConfig& c, const KeyValue& v) { c.api_keys_file = text(v); }},
  };
}

std::vector<Key> make_repository_keys() {
  return {
      {"repository.control",
       KeyType::kChoice,
       "none",
       "Which models are served: `none`, those that are there at the start; `explicit`, those that "
       "clients load; `poll`, those that are there, looked after while serving.",
       [](ServerConfig& c, const KeyValue& v) {
         c.repository.control = text(v) == "explicit" ? ControlMode::kExplicit
                                : text(v) == "poll"   ? ControlMode::kPoll
                                                      : ControlMode::kNone;
       },
       0,
       0,
       {"none", "explicit", "poll"}},
      {"repository.startup_models", KeyType::kTextList, "none",
       "With `explicit`: models that are loaded at the start; `*`: all.",
       [](ServerConfig& c, const KeyValue& v) { c.repository.startup_models = list(v); }},
      {"repository.poll_every", KeyType::kDuration, "15s",
       "With `poll`: how often the repositories are looked at.",
       [](ServerConfig& c, const KeyValue& v) { c.repository.poll_every = std::get<Duration>(v); },
       10, kDayMs},
      {"repository.settle", KeyType::kDuration, "2s",
       "With `poll`: a folder is read once no file of it has changed for so long.",
       [](ServerConfig& c, const KeyValue& v) { c.repository.settle = std::get<Duration>(v); }, 0,
       kDayMs},
  };
}

std::vector<Key> make_thread_keys() {
  return {
      {"threads.workers", KeyType::kInteger, "0",
       "Gateway workers; 0: one for every two CPUs, at least one.",
       [](ServerConfig& c, const KeyValue& v) { c.workers = static_cast<uint32_t>(number(v)); }, 0,
       256},
      {"threads.cpu_permits", KeyType::kInteger, "0",
       "Model runs at a time on the CPUs; 0: as many as there are CPUs.",
       [](ServerConfig& c, const KeyValue& v) { c.cpu_permits = static_cast<uint32_t>(number(v)); },
       0, 4096},
      {"threads.loaders", KeyType::kInteger, "2", "Models that load side by side.",
       [](ServerConfig& c, const KeyValue& v) {
         c.loader_threads = static_cast<uint32_t>(number(v));
       },
       1, 64},
      {"threads.pin_instances", KeyType::kBoolean, "false", "Pin instance threads to CPUs in turn.",
       [](ServerConfig& c, const KeyValue& v) { c.pin_instances = std::get<bool>(v); }},
  };
}

std::vector<Key> make_limit_keys() {
  return {
      {"limits.body", KeyType::kBytes, "64MiB", "Largest request body; larger ones get 413.",
       [](ServerConfig& c, const KeyValue& v) { c.limits.max_body_bytes = number(v); }, 1024, kTiB},
      {"limits.connections", KeyType::kInteger, "4096", "HTTP connections at a time.",
       [](ServerConfig& c, const KeyValue& v) { c.limits.max_connections = number(v); }, 1,
       kMostConnections},
      {"limits.in_flight", KeyType::kInteger, "8192", "Requests in flight, whole server.",
       [](ServerConfig& c, const KeyValue& v) { c.limits.max_in_flight = number(v); }, 1,
       10'000'000},
      {"limits.in_flight_bytes", KeyType::kBytes, "2GiB", "Bodies of requests in flight.",
       [](ServerConfig& c, const KeyValue& v) { c.limits.max_in_flight_bytes = number(v); }, 1024,
       kTiB},
      {"limits.shared_memory", KeyType::kBytes, "0",
       "System shared memory that clients may register, all regions together; 0: none is offered. "
       "Clients of this machine alone can use it, and name any object below /dev/shm.",
       [](ServerConfig& c, const KeyValue& v) { c.limits.max_shared_memory_bytes = number(v); }, 0,
       kTiB},
      {"limits.priority_ageing", KeyType::kDuration, "1s",
       "How long requests of one priority level may be overtaken by those of the level above.",
       [](ServerConfig& c, const KeyValue& v) { c.limits.priority_ageing = std::get<Duration>(v); },
       1, kHourMs},
      {"limits.answer_bytes", KeyType::kBytes, "1GiB",
       "Answers that clients have not taken yet, whole server; an answer above it becomes 503.",
       [](ServerConfig& c, const KeyValue& v) { c.limits.max_answer_bytes = number(v); }, 1024,
       kTiB},
      {"limits.write_stall", KeyType::kDuration, "20s",
       "A client that takes less than 5,000 bytes of its answer in this time is cut off; over "
       "gRPC, "
       "one that needs longer for each MiB of an answer above 64 KiB.",
       [](ServerConfig& c, const KeyValue& v) { c.limits.write_stall = std::get<Duration>(v); },
       100, kDayMs},
      {"limits.queue_items", KeyType::kInteger, "8192",
       "Rows that wait for one model version; above it 503 with reason queue_full.",
       [](ServerConfig& c, const KeyValue& v) { c.limits.queue.max_items = number(v); }, 1,
       10'000'000},
      {"limits.queue_bytes", KeyType::kBytes, "512MiB", "Bytes that wait for one model version.",
       [](ServerConfig& c, const KeyValue& v) { c.limits.queue.max_bytes = number(v); }, 1024,
       kTiB},
      {"limits.timeout", KeyType::kDuration, "1h",
       "Deadline of a request that brings none; a longer one is cut to it.",
       [](ServerConfig& c, const KeyValue& v) { c.limits.max_timeout = std::get<Duration>(v); }, 1,
       kDayMs},
  };
}

std::string check_patterns(const KeyValue& value) {
  const auto patterns = HeaderPatterns::parse(list(value));
  return patterns.has_value() ? std::string() : patterns.error();
}

std::vector<Key> make_operation_keys() {
  return {
      {"forward_headers",
       KeyType::kTextList,
       "none",
       "Headers of requests, REST and gRPC, that stand in their lines of the access log: names, or "
       "beginnings of names with a `*` behind them. Never those that carry credentials.",
       [](ServerConfig& c, const KeyValue& v) { c.forward_headers = list(v); },
       0,
       0,
       {},
       check_patterns},
      {"shutdown.lame_duck", KeyType::kDuration, "5s",
       "After SIGTERM: readiness is false, requests are still served.",
       [](ServerConfig& c, const KeyValue& v) { c.shutdown.lame_duck = std::get<Duration>(v); }, 0,
       kDayMs},
      {"shutdown.drain", KeyType::kDuration, "30s", "Then: time for what is in flight.",
       [](ServerConfig& c, const KeyValue& v) { c.shutdown.drain = std::get<Duration>(v); }, 0,
       kDayMs},
      {"shutdown.stop", KeyType::kDuration, "10s",
       "Then: time for what cannot be cut off, such as a file being opened; after it the process "
       "ends "
       "with status 3.",
       [](ServerConfig& c, const KeyValue& v) { c.shutdown.stop = std::get<Duration>(v); }, 0,
       kDayMs},
      {"log.access", KeyType::kText, "off", "Access log, one JSON line a request; `-`: stdout.",
       [](ServerConfig& c, const KeyValue& v) { c.log.access = text(v); }},
      {"log.level",
       KeyType::kChoice,
       "info",
       "Least level of the application log on stderr.",
       [](ServerConfig& c, const KeyValue& v) { c.log.level = text(v); },
       0,
       0,
       {"debug", "info", "warning", "error"}},
      {"trace.file", KeyType::kText, "none",
       "File that traces of requests go to, a JSON array to which more is appended; with it "
       "clients "
       "may set which requests are traced (trace extension).",
       [](ServerConfig& c, const KeyValue& v) { c.trace.file = text(v); }},
      {"log.decisions", KeyType::kText, "off", "Decision log, one JSON line a decision.",
       [](ServerConfig& c, const KeyValue& v) { c.log.decisions = text(v); }},
  };
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::span<const Key> all_keys() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all;
    for (auto part : {make_model_keys(), make_repository_keys(), make_listen_keys(),
                      make_thread_keys(), make_limit_keys(), make_operation_keys()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return keys;
}

std::string nearest_key(std::string_view path) {
  size_t best = std::numeric_limits<size_t>::max();
  std::string_view name;
  const auto consider = [&](std::string_view candidate) {
    const size_t distance = edit_distance(path, candidate);
    if (distance < best) {
      best = distance;
      name = candidate;
    }
  };
  for (const Key& key : all_keys()) {
    consider(key.path);
    consider(key.path.substr(0, key.path.find('.')));
  }
  return best <= std::max<size_t>(path.size() / 2, 2) ? std::string(name) : "";
}

}  // namespace baton::protocol::server_config
