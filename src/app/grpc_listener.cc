#include "app/grpc_listener.h"

#include <utility>

#ifdef BATON_WITH_GRPC
#include "adapters/grpc/grpc_server.h"
#endif

namespace baton::app {

#ifdef BATON_WITH_GRPC
namespace {

class Listener final : public GrpcListener {
 public:
  Listener(adapters::grpc_api::GrpcServerOptions options,
           const std::vector<adapters::grpc_api::GrpcWorker>& workers, const ports::Clock& clock)
      : server_(std::move(options), workers, clock) {}

  Result<void, LoadFailure> listen() {
    auto bound = server_.listen();
    if (!bound.has_value()) return fail(LoadFailure{"grpc: " + bound.error()});
    port_ = *bound;
    return {};
  }
  [[nodiscard]] uint16_t port() const override { return port_; }
  void drain(Instant deadline, std::function<void()> done) override {
    server_.drain(deadline, std::move(done));
  }

 private:
  adapters::grpc_api::GrpcServer server_;
  uint16_t port_ = 0;
};

}  // namespace

Result<std::unique_ptr<GrpcListener>, LoadFailure> listen_grpc(
    const ServerConfig& config, const std::vector<std::unique_ptr<Worker>>& workers,
    const ports::Clock& clock, GrpcCounters& counters, ports::JobRunner* readers) {
  adapters::grpc_api::GrpcServerOptions options;
  options.address = config.listen.host;
  options.port = config.listen.grpc_port;
  options.message_bytes_max = static_cast<int64_t>(config.limits.max_body_bytes);
  options.write_stall = config.limits.write_stall;
  options.write_stalls = &counters.write_stalls;
  options.connections_refused = &counters.connections_refused;
  std::vector<adapters::grpc_api::GrpcWorker> fronts;
  fronts.reserve(workers.size());
  for (const auto& worker : workers) {
    fronts.push_back({&worker->loop(), &worker->loop(), &worker->typed(), readers});
  }
  auto listener = std::make_unique<Listener>(options, fronts, clock);
  BATON_TRY(listener->listen());
  return listener;
}
#else
Result<std::unique_ptr<GrpcListener>, LoadFailure> listen_grpc(
    const ServerConfig&, const std::vector<std::unique_ptr<Worker>>&, const ports::Clock&,
    GrpcCounters&, ports::JobRunner*) {
  return nullptr;
}
#endif

}  // namespace baton::app
