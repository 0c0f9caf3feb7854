#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "adapters/transport/worker_loop.h"
#include "base/result.h"
#include "base/time.h"
#include "domain/forwarded_headers.h"
#include "ports/clock.h"
#include "ports/inference_front.h"
#include "ports/job_runner.h"

namespace baton::adapters::grpc_api {

struct GrpcServerOptions {
  std::string address = "127.0.0.1";  // numeric, IPv4 or IPv6
  uint16_t port = 0;                  // 0: a free one
  int backlog = 1024;
  size_t message_bytes_max = INT32_MAX;   // received; larger is RESOURCE_EXHAUSTED
  uint32_t streams_max = 1024;            // concurrent calls of one connection
  size_t metadata_bytes_max = 16 * 1024;  // of one call
  size_t connections_max = 4096;          // of all workers; more are closed at once
  // Bytes of messages that are not complete, or not read yet, of all connections; above it a call
  // ends as overloaded. Requests that have been read are the front's to bound.
  uint64_t receiving_bytes_max = 1ULL << 30;

  HeaderPatterns forward_headers{};  // of a call's metadata: kept with its requests

  Duration start_timeout = Duration::s(10);  // from connecting to the client's settings
  // In each window of a call's message at least so many bytes must arrive, else it ends.
  Duration body_window = Duration::s(10);
  uint64_t body_window_bytes = 5'000;
  // In each window of an answer at least so many bytes must be taken, else the call is cut off.
  Duration write_window = Duration::s(20);
  uint64_t write_window_bytes = 5'000;
  // While draining, how long a client may still begin calls before it has heard of the end.
  Duration drain_grace = Duration::ms(500);
  Duration linger = Duration::s(2);  // bytes are dropped so that the client reads the end
  Duration watch_interval = Duration::ms(250);  // how often a health watcher looks again
};

// One worker as this adapter needs it. All outlive the server.
struct GrpcWorker {
  transport::WorkerLoop* loop = nullptr;
  ports::InferenceFront* front = nullptr;  // on the loop
  // Reads, expands and compresses large messages, so that the worker's other calls need not wait;
  // null: the worker does.
  ports::JobRunner* readers = nullptr;
};

struct GrpcServerCounters {
  uint64_t open = 0;      // connections now
  uint64_t accepted = 0;  // since the start
  // Closed at once: over connections_max, or three quarters of the process's descriptors are in
  // use, and the rest is for others.
  uint64_t refused = 0;
  uint64_t receiving = 0;  // bytes of messages that are not complete or not read yet
  uint64_t timeouts =
      0;  // connections and messages that came, or answers that were taken, too slowly
  uint64_t bad_requests = 0;  // connections that broke the protocol or went beyond a bound of it
  uint64_t write_stalls = 0;  // of the timeouts, answers that were not taken
};

// Serves inference.GRPCInferenceService and grpc.health.v1.Health. One listener, on the first
// worker's loop, hands each connection to the worker with the fewest. Constructed before the loops
// run or beside them; destroyed when they have stopped.
class GrpcServer {
 public:
  GrpcServer(GrpcServerOptions options, const std::vector<GrpcWorker>& workers,
             const ports::Clock& clock);
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // Binds and serves. The port, or why not. Once.
  [[nodiscard]] Result<uint16_t, std::string> listen();
  // Takes no new calls, lets the others end and cuts them off at `deadline`. `done` is called once,
  // on the first worker's loop, when no connection is left. Any thread; once.
  void drain(Instant deadline, std::move_only_function<void()> done);

  [[nodiscard]] GrpcServerCounters counters() const;  // any thread

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::adapters::grpc_api
