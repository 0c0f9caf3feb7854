#pragma once
// Internal to this room: the connections of one worker.

#include <atomic>
#include <memory>
#include <string>
#include <unordered_set>

#include "adapters/grpc/call.h"

namespace baton::adapters::grpc_api {

class Connection;

// What all workers of a server share. Counters only; relaxed.
struct ServerState {
  explicit ServerState(GrpcServerOptions given)
      : options(std::move(given)),
        receiving(std::make_shared<ByteBudget>(options.receiving_bytes_max)) {}

  const GrpcServerOptions options;
  MethodTable methods;
  const std::shared_ptr<ByteBudget>
      receiving;  // bytes of messages that are not complete or not read yet
  std::atomic<uint64_t> open{0};
  std::atomic<uint64_t> accepted{0};
  std::atomic<uint64_t> refused{0};
  std::atomic<uint64_t> timeouts{0};
  std::atomic<uint64_t> bad_requests{0};
  std::atomic<uint64_t> write_stalls{0};
};

// All calls on the worker's loop, but those marked.
class ConnectionSet {
 public:
  ConnectionSet(const GrpcWorker& worker, ServerState& server, const ports::Clock& clock);
  ~ConnectionSet();
  ConnectionSet(const ConnectionSet&) = delete;
  ConnectionSet& operator=(const ConnectionSet&) = delete;

  // Takes a connected socket over; any thread.
  void adopt(int socket, std::string peer);
  [[nodiscard]] uint64_t load() const { return load_.load(std::memory_order_relaxed); }  // any

  void begin_drain(Instant deadline);

  // For connections.
  void release(const std::shared_ptr<Connection>& connection);
  [[nodiscard]] ServerState& server() { return server_; }
  [[nodiscard]] const CallContext& context() const { return context_; }
  [[nodiscard]] transport::WorkerLoop& loop() { return *context_.worker.loop; }
  [[nodiscard]] Instant now() const { return context_.clock.now(); }

 private:
  void open(int socket, std::string peer);
  void cut_off();

  ServerState& server_;
  const CallContext context_;
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  bool draining_ = false;
  std::atomic<uint64_t> load_{0};
};

}  // namespace baton::adapters::grpc_api
