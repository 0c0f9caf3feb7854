#include "app/server.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>

#include "adapters/control/control_loop.h"
#include "adapters/grpc/grpc_server.h"
#include "adapters/http/http_server.h"
#include "adapters/jobs/job_pool.h"
#include "adapters/log/log_writer.h"
#include "adapters/log/trace_log.h"
#include "adapters/onnx/ort_library.h"
#include "adapters/repository/folder_repository.h"
#include "adapters/shared_memory/system_shared_memory.h"
#include "adapters/sqlite/sqlite_store.h"
#include "app/engine_factory.h"
#include "app/signals.h"
#include "app/worker.h"
#include "base/json_writer.h"
#include "domain/version.h"
#include "protocol/server_config/server_config_codec.h"
#include "service/access/api_keys.h"
#include "service/fleet/fleet_service.h"
#include "service/gateway/metrics_front.h"

namespace baton::app {
namespace {

namespace http = adapters::http;
namespace fs = std::filesystem;

// How long decisions stay in memory alone when a file was asked for.
constexpr Duration kDecisionsEvery = Duration::ms(20);
constexpr Duration kIdleLooksApart = Duration::ms(1);
// Loading yields to serving (server#8117), reading and writing large JSON a little.
constexpr int kLoaderNice = 10;
constexpr int kJsonNice = 5;

ports::LogLevel log_level(const std::string& name) {
  if (name == "debug") return ports::LogLevel::kDebug;
  if (name == "warning") return ports::LogLevel::kWarning;
  if (name == "error") return ports::LogLevel::kError;
  return ports::LogLevel::kInfo;
}

// The parts of a running server, in order of construction; destroyed from the bottom up.
class Server {
 public:
  explicit Server(const ServeOptions& options)
      : options_(options),
        cpus_(std::max(std::thread::hardware_concurrency(), 1U)),
        error_log_(STDERR_FILENO, false),
        log_(error_log_, clock_, log_level(options.config.log.level)),
        answers_(options.config.limits.max_answer_bytes),
        telemetry_(worker_count()),
        engines_(options_.config, clock_, log_, cpus_) {}

  Result<int, LoadFailure> run();
  // These two on any thread, before run() and within it. The first ends it in order.
  void end(int number);
  void tell_other(int number);

 private:
  [[nodiscard]] const ServerConfig& config() const { return options_.config; }
  [[nodiscard]] size_t worker_count() const {
    return config().workers != 0 ? config().workers : std::max(cpus_ / 2, 1U);
  }
  Result<void, LoadFailure> prepare();
  Result<void, LoadFailure> load_access();
  void make_workers();
  Result<uint16_t, LoadFailure> listen_http(const std::string& name, uint16_t port,
                                            const std::vector<http::HttpWorker>& handlers);
  Result<uint16_t, LoadFailure> listen_grpc();
  Result<void, LoadFailure> listen();
  Result<void, LoadFailure> write_ports() const;
  [[nodiscard]] service::ProcessCounts process_counts() const;
  void start_threads();
  void reread_configuration();
  void reread_keys(const std::string& path);
  void reopen_access_log();
  void write_decisions();
  void write_decisions_periodically();
  void end_idle_sequences();
  void begin_end(int number);
  void drain(Instant deadline);
  void finish();

  ServeOptions options_;  // the controller's, but for what does not change
  const uint32_t cpus_;
  adapters::transport::SteadyClock clock_;
  adapters::log::LogWriter error_log_;
  adapters::log::TextLog log_;
  std::unique_ptr<adapters::log::LogWriter> access_log_;
  std::unique_ptr<adapters::log::LogWriter> decision_log_;
  std::unique_ptr<adapters::log::TraceLog> traces_;  // null: not offered
  std::unique_ptr<service::AccessControl> access_;
  HeaderPatterns forward_headers_;
  ByteBudget answers_;
  std::unique_ptr<adapters::SystemSharedMemory> shared_memory_;  // null: not offered
  service::Telemetry telemetry_;
  adapters::ControlLoop controller_{clock_};
  std::unique_ptr<ports::ModelRepository> repository_;
  std::unique_ptr<ports::RuntimeLoader> runtime_;
  std::unique_ptr<ports::StateStore> store_;
  InProcessEngines engines_;
  std::unique_ptr<service::FleetService> fleet_;
  std::vector<std::unique_ptr<Worker>> workers_;
  adapters::transport::WorkerLoop metrics_loop_;
  std::unique_ptr<service::MetricsFront> metrics_;
  std::vector<std::unique_ptr<http::HttpServer>> servers_;  // inference, then metrics
  std::unique_ptr<adapters::grpc_api::GrpcServer> grpc_;    // null: not served
  std::unique_ptr<adapters::jobs::JobPool> jobs_;
  std::unique_ptr<adapters::jobs::JobPool> chores_;
  std::thread metrics_thread_;
  std::unique_ptr<adapters::jobs::JobPool> json_readers_;
  std::unique_ptr<adapters::jobs::JobPool> json_writers_;
  uint16_t http_port_ = 0;
  uint16_t metrics_port_ = 0;
  std::optional<uint16_t> grpc_port_;
  std::atomic<uint64_t> decisions_missed_{0};
  size_t draining_ = 0;
  std::atomic<bool> ending_{false};
};

// The server while it hears of signals. One that comes before is handed over late, one that comes
// after finds the end under way.
class Hearing {
 public:
  void begin(Server& server) {
    const std::lock_guard lock(mutex_);
    server_ = &server;
    if (number_ != 0) server.end(number_);
  }
  void over() {
    const std::lock_guard lock(mutex_);
    server_ = nullptr;
  }
  void on_end(int number) {
    const std::lock_guard lock(mutex_);
    number_ = number;
    if (server_ != nullptr) server_->end(number);
  }
  void on_ignored(int number) {
    const std::lock_guard lock(mutex_);
    if (server_ != nullptr) server_->tell_other(number);
  }

 private:
  std::mutex mutex_;
  Server* server_ = nullptr;
  int number_ = 0;
};

Result<service::AccessControl::TenantByKey, LoadFailure> read_keys(const std::string& path) {
  std::ifstream in(path);
  if (!in) return fail(LoadFailure{"the file of API keys cannot be read: " + path});
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  auto keys = service::parse_api_keys(text);
  if (keys.has_value()) return std::move(*keys);
  const std::string line = keys.error().line > 0 ? ":" + std::to_string(keys.error().line) : "";
  return fail(LoadFailure{path + line + ": " + keys.error().message});
}

Result<void, LoadFailure> Server::load_access() {
  if (config().api_keys_file.empty()) return {};
  BATON_ASSIGN(auto keys, read_keys(config().api_keys_file));
  access_ = std::make_unique<service::AccessControl>(std::move(keys));
  return {};
}

// Null for an empty path.
Result<std::unique_ptr<adapters::log::LogWriter>, LoadFailure> open_log(const std::string& kind,
                                                                        const std::string& path) {
  if (path.empty()) return nullptr;
  auto writer = adapters::log::open_log(path);
  if (!writer) return fail(LoadFailure{"the " + kind + " log cannot be opened: " + path});
  return writer;
}

Result<void, LoadFailure> Server::prepare() {
  BATON_TRY(load_access());
  auto patterns = HeaderPatterns::parse(config().forward_headers);
  if (!patterns.has_value()) return fail(LoadFailure{"forward_headers: " + patterns.error()});
  forward_headers_ = *std::move(patterns);
  BATON_ASSIGN(access_log_, open_log("access", config().log.access));
  BATON_ASSIGN(decision_log_, open_log("decision", config().log.decisions));
  if (decision_log_) engines_.set_decision_log(*decision_log_);
  if (const std::string& path = config().trace.file; !path.empty()) {
    auto file = adapters::log::TraceFile::open(path);
    if (!file.has_value()) return fail(LoadFailure{"trace.file " + path + ": " + file.error()});
    traces_ = std::make_unique<adapters::log::TraceLog>(path, *std::move(file));
  }
  if (!config().state_file.empty()) {
    auto store = adapters::sqlite::open_sqlite_store(config().state_file);
    if (!store.has_value()) return fail(LoadFailure{store.error().message});
    store_ = std::move(*store);
  }
  repository_ = adapters::repository::make_folder_repository(config().repositories);
  BATON_ASSIGN(runtime_, adapters::onnx::open_onnxruntime({find_ort_library(config().ort_library),
                                                           config().cpu_when_provider_missing},
                                                          log_, clock_));
  log_.log(ports::LogLevel::kInfo,
           "baton " + std::string(kBatonVersion) + ", ONNX Runtime " + runtime_->version());
  return {};
}

void Server::make_workers() {
  service::GatewayOptions options;
  const uint64_t count = worker_count();
  options.limits.max_in_flight = std::max<uint64_t>(config().limits.max_in_flight / count, 1);
  // A worker's share holds at least one request of the largest size.
  options.limits.max_bytes =
      std::max(config().limits.max_in_flight_bytes / count, config().limits.max_body_bytes);
  options.max_timeout = config().limits.max_timeout;
  options.shared_input_bytes_max = config().limits.max_body_bytes;
  if (const uint64_t most = config().limits.max_shared_memory_bytes; most > 0) {
    shared_memory_ =
        std::make_unique<adapters::SystemSharedMemory>(adapters::SharedMemoryLimits{.bytes = most});
  }
  for (size_t i = 0; i < count; ++i) {
    options.worker = i;
    workers_.push_back(std::make_unique<Worker>(
        WorkerPorts{clock_, *fleet_, telemetry_, &answers_, json_readers_.get(),
                    json_writers_.get(), fleet_.get(), access_.get(), access_log_.get(),
                    decision_log_ != nullptr, config().limits.max_body_bytes, shared_memory_.get(),
                    &log_, forward_headers_.empty() ? nullptr : &forward_headers_, traces_.get()},
        options));
  }
  std::vector<ports::DirectoryFollower*> followers;
  for (const auto& worker : workers_) followers.push_back(worker.get());
  fleet_->set_followers(std::move(followers));
}

Result<uint16_t, LoadFailure> Server::listen_http(const std::string& name, uint16_t port,
                                                  const std::vector<http::HttpWorker>& handlers) {
  http::HttpServerOptions options;
  options.address = config().listen.host;
  options.port = port;
  options.limits.body_bytes = config().limits.max_body_bytes;
  options.connections_max = config().limits.max_connections;
  options.write_window = config().limits.write_stall;
  servers_.push_back(std::make_unique<http::HttpServer>(options, handlers, clock_));
  auto bound = servers_.back()->listen();
  if (!bound.has_value()) return fail(LoadFailure{name + ": " + bound.error()});
  return *bound;
}

Result<uint16_t, LoadFailure> Server::listen_grpc() {
  adapters::grpc_api::GrpcServerOptions options;
  options.address = config().listen.host;
  options.port = config().listen.grpc_port;
  options.forward_headers = forward_headers_;
  options.message_bytes_max =
      static_cast<size_t>(std::min<uint64_t>(config().limits.max_body_bytes, INT32_MAX));
  options.connections_max = config().limits.max_connections;
  options.write_window = config().limits.write_stall;
  std::vector<adapters::grpc_api::GrpcWorker> fronts;
  fronts.reserve(workers_.size());
  for (const auto& worker : workers_) {
    fronts.push_back({&worker->loop(), &worker->typed(), json_readers_.get()});
  }
  grpc_ = std::make_unique<adapters::grpc_api::GrpcServer>(options, fronts, clock_);
  auto bound = grpc_->listen();
  if (!bound.has_value()) return fail(LoadFailure{"grpc: " + bound.error()});
  return *bound;
}

Result<void, LoadFailure> Server::listen() {
  std::vector<http::HttpWorker> handlers;
  handlers.reserve(workers_.size());
  for (const auto& worker : workers_) handlers.push_back({&worker->loop(), &worker->http()});
  BATON_ASSIGN(http_port_, listen_http("http", config().listen.http_port, handlers));
  metrics_ = std::make_unique<service::MetricsFront>(
      *fleet_, telemetry_, [this] { return process_counts(); }, access_.get());
  BATON_ASSIGN(metrics_port_, listen_http("metrics", config().listen.metrics_port,
                                          {{&metrics_loop_, metrics_.get()}}));
  if (config().listen.grpc) {
    BATON_ASSIGN(grpc_port_, listen_grpc());
  }
  const std::string host = config().listen.host + ":";
  log_.log(ports::LogLevel::kInfo, "http    on " + host + std::to_string(http_port_));
  log_.log(ports::LogLevel::kInfo, "metrics on " + host + std::to_string(metrics_port_));
  if (grpc_port_) {
    log_.log(ports::LogLevel::kInfo, "grpc    on " + host + std::to_string(*grpc_port_));
  }
  return {};
}

Result<void, LoadFailure> Server::write_ports() const {
  if (options_.ports_file.empty()) return {};
  std::string text;
  JsonWriter json(text);
  json.begin_object().field("http", uint64_t{http_port_}).field("metrics", uint64_t{metrics_port_});
  if (grpc_port_) json.field("grpc", uint64_t{*grpc_port_});
  json.field("pid", int64_t{getpid()}).end_object();
  // Written beside and renamed: a reader sees the whole file or none.
  const std::string part = options_.ports_file + ".part";
  std::ofstream(part) << text << '\n';
  std::error_code error;
  fs::rename(part, options_.ports_file, error);
  if (error) return fail(LoadFailure{"the ports file cannot be written: " + error.message()});
  return {};
}

// On the metrics loop.
service::ProcessCounts Server::process_counts() const {
  service::ProcessCounts counts;
  const auto add = [&](const char* name, const auto& now) {
    counts.listeners.push_back({.name = name,
                                .open = now.open,
                                .accepted = now.accepted,
                                .refused = now.refused,
                                .timeouts = now.timeouts,
                                .bad_requests = now.bad_requests,
                                .receiving = now.receiving,
                                .write_stalls = now.write_stalls});
  };
  for (size_t i = 0; i < servers_.size(); ++i) {
    add(i == 0 ? "http" : "metrics", servers_[i]->counters());
  }
  if (grpc_) add("grpc", grpc_->counters());
  counts.logs.push_back({"application", error_log_.dropped()});
  if (access_log_) counts.logs.push_back({"access", access_log_->dropped()});
  if (decision_log_) counts.logs.push_back({"decisions", decision_log_->dropped()});
  if (traces_) counts.logs.push_back({"traces", traces_->dropped()});
  counts.unwritten_bytes = answers_.used();
  counts.decisions_missed = decisions_missed_.load(std::memory_order_relaxed);
  return counts;
}

void Server::start_threads() {
  for (const auto& worker : workers_) worker->start();
  metrics_thread_ = std::thread([this] { metrics_loop_.run(); });
  pthread_setname_np(metrics_thread_.native_handle(), "baton-metrics");
}

Result<int, LoadFailure> Server::run() {
  BATON_TRY(prepare());
  if (ending_) {
    log_.log(ports::LogLevel::kInfo, "stopped before it served");
    return 0;
  }
  using adapters::jobs::JobPool;
  using adapters::jobs::JobPoolOptions;
  jobs_ = std::make_unique<JobPool>(
      JobPoolOptions{std::max(config().loader_threads, 1U), "baton-loader", kLoaderNice});
  chores_ = std::make_unique<JobPool>(JobPoolOptions{1, "baton-repo", kLoaderNice});
  json_readers_ =
      std::make_unique<JobPool>(JobPoolOptions{worker_count(), "baton-json-in", kJsonNice});
  json_writers_ =
      std::make_unique<JobPool>(JobPoolOptions{worker_count(), "baton-json-out", kJsonNice});
  fleet_ = std::make_unique<service::FleetService>(
      service::FleetPorts{{*repository_, *runtime_, clock_, store_.get()},
                          engines_,
                          *jobs_,
                          *chores_,
                          controller_,
                          controller_,
                          log_,
                          telemetry_},
      service::FleetOptions{config().warn_unsupported
                                ? protocol::model_config::Unsupported::kWarn
                                : protocol::model_config::Unsupported::kRefuse,
                            config().required_models, config().repository});
  make_workers();
  BATON_TRY(listen());
  auto started = fleet_->start();
  start_threads();
  auto written = started.has_value() ? write_ports() : started;
  if (written.has_value()) {
    fleet_->save_curves_periodically();
    write_decisions_periodically();
    end_idle_sequences();
  } else {
    controller_.post([this] {
      jobs_->cancel();
      drain(clock_.now());  // clients may be there already
    });
  }
  controller_.run();
  finish();
  if (!written.has_value()) return fail(std::move(written).error());
  return 0;
}

void Server::write_decisions() {
  if (!decision_log_) return;
  uint64_t missed = engines_.write_decisions();
  for (const auto& worker : workers_) missed += worker->write_decisions(*decision_log_);
  decisions_missed_.fetch_add(missed, std::memory_order_relaxed);
}

void Server::write_decisions_periodically() {
  if (!decision_log_) return;
  write_decisions();
  controller_.arm(clock_.now() + kDecisionsEvery, [this] { write_decisions_periodically(); });
}

// Sequences that become idle between two looks are seen at the next one.
void Server::end_idle_sequences() {
  const Instant next = std::max(engines_.end_idle_sequences(), clock_.now() + kIdleLooksApart);
  controller_.arm(next, [this] { end_idle_sequences(); });
}

void Server::end(int number) {
  ending_ = true;
  controller_.post([this, number] { begin_end(number); });
}

void Server::tell_other(int number) {
  if (number == SIGHUP && options_.reread) {
    controller_.post([this] { reread_configuration(); });
    return;
  }
  const char* name = number == SIGHUP ? "SIGHUP" : number == SIGUSR1 ? "SIGUSR1" : "SIGUSR2";
  log_.log(ports::LogLevel::kWarning, std::string(name) + ": ignored, nothing is bound to it");
}

// What holds while serving is applied; the rest is named. A file that is wrong changes nothing.
void Server::reread_configuration() {
  auto read = options_.reread();
  if (!read.has_value()) {
    log_.log(ports::LogLevel::kError, "SIGHUP: nothing has changed: " + read.error());
    return;
  }
  for (const auto& change : protocol::server_config::changed_keys(options_.config, *read)) {
    const bool keys = change.path == "api_keys_file" && access_ && !read->api_keys_file.empty();
    const bool applies = keys || change.path == "log.level";
    if (applies) {
      log_.log(ports::LogLevel::kInfo,
               "SIGHUP: " + change.path + " is " + change.after + ", it was " + change.before);
      options_.config.given[change.path] = change.after;
    } else {
      log_.log(ports::LogLevel::kWarning, "SIGHUP: " + change.path + " stays " + change.before +
                                              " until a restart; it is configured as " +
                                              change.after);
    }
  }
  if (options_.config.log.level != read->log.level) {
    options_.config.log.level = read->log.level;
    log_.apply(adapters::log::settings_from(log_level(read->log.level)));
  }
  if (access_ && !read->api_keys_file.empty()) reread_keys(read->api_keys_file);
  reopen_access_log();
  log_.log(ports::LogLevel::kInfo, "SIGHUP: the configuration has been read again");
}

void Server::reread_keys(const std::string& path) {
  auto keys = read_keys(path);
  if (!keys.has_value()) {
    log_.log(ports::LogLevel::kError, "SIGHUP: API keys stay: " + keys.error().message);
    return;
  }
  log_.log(ports::LogLevel::kInfo, "SIGHUP: " + std::to_string(keys->size()) + " API keys");
  access_->replace(std::move(*keys));
}

// For who has moved it away. The decision log stays: a part of it alone cannot be replayed.
void Server::reopen_access_log() {
  if (!access_log_ || access_log_->reopen(config().log.access)) return;
  log_.log(ports::LogLevel::kError,
           "SIGHUP: " + config().log.access + " cannot be opened: the access log goes on as it is");
}

void Server::begin_end(int number) {
  const Duration lame_duck = config().shutdown.lame_duck;
  log_.log(ports::LogLevel::kInfo, std::string(number == SIGINT ? "SIGINT" : "SIGTERM") +
                                       ": not ready, serving on for " +
                                       std::to_string(lame_duck.ms()) + " ms");
  fleet_->begin_lame_duck();
  jobs_->cancel();  // nobody waits for models that still load
  controller_.arm(clock_.now() + lame_duck,
                  [this] { drain(clock_.now() + config().shutdown.drain); });
}

void Server::drain(Instant deadline) {
  if (draining_ > 0) return;
  engines_.expect_no_more();
  draining_ = servers_.size() + (grpc_ ? 1 : 0);
  log_.log(ports::LogLevel::kInfo, "draining");
  const auto done = [this] {
    controller_.post([this] {
      if (--draining_ == 0) controller_.stop();
    });
  };
  for (const auto& server : servers_) server->drain(deadline, done);
  if (grpc_) grpc_->drain(deadline, done);
}

void Server::finish() {
  jobs_.reset();    // waits for the steps that loading is at
  chores_.reset();  // and for an engine that is being freed
  fleet_->save_curves();
  engines_.stop(clock_.now() + Duration::s(1));
  for (const auto& worker : workers_) {
    // Behind the answers that the engines have just posted.
    worker->loop().post([&loop = worker->loop()] { loop.stop(); });
  }
  for (const auto& worker : workers_) worker->join();
  json_readers_.reset();  // no worker gives them work any more
  json_writers_.reset();
  metrics_loop_.stop();
  metrics_thread_.join();
  write_decisions();
  log_.log(ports::LogLevel::kInfo, "stopped");
}

}  // namespace

std::string find_ort_library(const std::string& configured) {
  if (!configured.empty()) return configured;
  if (const char* from_environment = std::getenv("BATON_ORT_LIBRARY")) return from_environment;
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  for (const char* folder :
       {"../lib", "../../.cache/onnxruntime/lib", "../../../.cache/onnxruntime/lib"}) {
    const fs::path place = binary.parent_path() / folder;
    for (const fs::directory_entry& entry : fs::directory_iterator(place, error)) {
      if (entry.path().filename().string().starts_with("libonnxruntime.so")) return entry.path();
    }
  }
  return "libonnxruntime.so.1";
}

namespace {

// As many descriptors as the system allows: each connection is one.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Blocks of a MiB and more go back to the system when they are freed. Left to itself the allocator
// would keep blocks of up to 32 MiB once it has seen one of that size.
void give_large_blocks_back() {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
}

}  // namespace

Result<int, LoadFailure> run_server(const ServeOptions& options) {
  // A client that goes away must not end the process; signals are for the watching thread alone.
  signal(SIGPIPE, SIG_IGN);
  block_signals({SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2});
  raise_descriptor_limit();
  give_large_blocks_back();
  const ShutdownConfig& shutdown = options.config.shutdown;
  const Duration bound = shutdown.lame_duck + shutdown.drain + shutdown.stop;
  Hearing hearing;
  // Around the server: from its first step to its last destructor a signal ends it in time.
  const EndWatch signals(
      {SIGTERM, SIGINT}, std::chrono::milliseconds(bound.ms()),
      [&](int number) { hearing.on_end(number); },
      {{SIGHUP, SIGUSR1, SIGUSR2}, [&](int number) { hearing.on_ignored(number); }});
  Server server(options);
  hearing.begin(server);
  auto result = server.run();
  hearing.over();
  return result;
}

}  // namespace baton::app
