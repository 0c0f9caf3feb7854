#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "app/worker.h"
#include "base/result.h"
#include "domain/model.h"
#include "domain/server_config.h"

namespace baton::app {

// The gRPC front end as the server sees it, so that a build without gRPC has the same server.
class GrpcListener {
 public:
  virtual ~GrpcListener() = default;
  [[nodiscard]] virtual uint16_t port() const = 0;
  // Takes no new calls; `done` is called once, on any thread, when the last has ended or been cut
  // off.
  virtual void drain(Instant deadline, std::function<void()> done) = 0;
};

// What is counted of a gRPC server's clients.
struct GrpcCounters {
  std::atomic<uint64_t> write_stalls{0};         // calls cut off: their answers were not taken
  std::atomic<uint64_t> connections_refused{0};  // for want of descriptors
};

// Binds and serves; large messages are read by `readers`. Null in a build without gRPC.
[[nodiscard]] Result<std::unique_ptr<GrpcListener>, LoadFailure> listen_grpc(
    const ServerConfig& config, const std::vector<std::unique_ptr<Worker>>& workers,
    const ports::Clock& clock, GrpcCounters& counters, ports::JobRunner* readers);

}  // namespace baton::app
