#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "ports/clock.h"
#include "ports/executor.h"
#include "ports/inference_front.h"
#include "ports/job_runner.h"

namespace baton::adapters::grpc_api {

struct GrpcServerOptions {
  std::string address = "127.0.0.1";      // numeric, IPv4 or IPv6
  uint16_t port = 0;                      // 0: a free one
  int64_t message_bytes_max = INT32_MAX;  // received; larger is RESOURCE_EXHAUSTED
  int streams_max = 1024;                 // concurrent calls of one connection
  int64_t memory_bytes_max = 1LL << 30;   // of buffers of the library; above it reading pauses
  int metadata_bytes_max = 16 * 1024;
  // How long a client may take for each MiB of an answer; it is cut off then.
  Duration write_stall = Duration::s(20);
  std::atomic<uint64_t>* write_stalls = nullptr;  // counts those; outlives the server
  // Counts connections closed at once because three quarters of the process's descriptors are in
  // use; outlives the server.
  std::atomic<uint64_t>* connections_refused = nullptr;
  Duration watch_interval = Duration::ms(250);  // how often a health watcher looks again
};

// One worker as this adapter needs it. All outlive the server.
struct GrpcWorker {
  ports::Executor* executor = nullptr;
  ports::Timers* timers = nullptr;
  ports::InferenceFront* front = nullptr;  // used on the executor only, refuse_caller() excepted
  // Reads large messages, so that other calls of the queue need not wait; null: the queue does.
  ports::JobRunner* readers = nullptr;
};

// Serves inference.GRPCInferenceService and grpc.health.v1.Health. Calls go to the workers in turn.
// Destroyed while the workers' loops still run, or after drain() has said that it is done.
class GrpcServer {
 public:
  GrpcServer(GrpcServerOptions options, const std::vector<GrpcWorker>& workers,
             const ports::Clock& clock);
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // Binds and serves. The port, or why not. Once.
  [[nodiscard]] Result<uint16_t, std::string> listen();
  // Takes no new calls, lets the others end and cuts them off at `deadline`. `done` is called on a
  // thread of this server. Any thread; once, after listen(). The loops run meanwhile.
  void drain(Instant deadline, std::move_only_function<void()> done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::adapters::grpc_api
