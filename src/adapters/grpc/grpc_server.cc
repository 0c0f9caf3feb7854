#include "adapters/grpc/grpc_server.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "adapters/grpc/connection_set.h"
#include "adapters/grpc/health.h"
#include "adapters/grpc/infer_call.h"
#include "adapters/grpc/inference_service.h"
#include "adapters/transport/acceptor.h"
#include "base/check.h"

namespace baton::adapters::grpc_api {
namespace {

constexpr Duration kDrainCheck = Duration::ms(5);

// Descriptors are given out from the lowest: those below this one are in use.
bool leaves_room(int descriptor) {
  rlimit limit{};
  BATON_CHECK(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  return static_cast<rlim_t>(descriptor) < limit.rlim_cur - limit.rlim_cur / 4;
}

}  // namespace

struct GrpcServer::Impl {
  Impl(GrpcServerOptions given, const std::vector<GrpcWorker>& workers,
       const ports::Clock& server_clock)
      : state(std::move(given)),
        clock(server_clock),
        health{server_clock, state.options.watch_interval},
        first(*workers.front().loop),
        acceptor(first, server_clock,
                 [this](int socket, std::string peer) { place(socket, std::move(peer)); }) {
    add_inference_methods(state.methods);
    state.methods.offered[inference_method("ModelInfer")] = infer_method();
    state.methods.offered[inference_method("ModelStreamInfer")] = stream_infer_method();
    add_health_methods(state.methods, health);
    for (const GrpcWorker& worker : workers) {
      sets.push_back(std::make_unique<ConnectionSet>(worker, state, server_clock));
    }
  }

  void place(int socket, std::string peer) {
    state.accepted.fetch_add(1, std::memory_order_relaxed);
    const uint64_t open = state.open.fetch_add(1, std::memory_order_relaxed);
    if (open >= state.options.connections_max || !leaves_room(socket)) {
      state.refused.fetch_add(1, std::memory_order_relaxed);
      state.open.fetch_sub(1, std::memory_order_relaxed);
      ::close(socket);
      return;
    }
    const auto least = std::min_element(sets.begin(), sets.end(), [](const auto& a, const auto& b) {
      return a->load() < b->load();
    });
    (*least)->adopt(socket, std::move(peer));
  }

  void check_drained() {
    if (state.open.load(std::memory_order_acquire) == 0) {
      if (drained) std::exchange(drained, nullptr)();
      return;
    }
    first.arm(clock.now() + kDrainCheck, [this] { check_drained(); });
  }

  ServerState state;
  const ports::Clock& clock;
  HealthState health;
  transport::WorkerLoop& first;
  transport::Acceptor acceptor;
  std::vector<std::unique_ptr<ConnectionSet>> sets;
  std::move_only_function<void()> drained;
};

GrpcServer::GrpcServer(GrpcServerOptions options, const std::vector<GrpcWorker>& workers,
                       const ports::Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(options), workers, clock)) {}

GrpcServer::~GrpcServer() = default;

Result<uint16_t, std::string> GrpcServer::listen() {
  const GrpcServerOptions& options = impl_->state.options;
  return impl_->acceptor.listen(options.address, options.port, options.backlog);
}

void GrpcServer::drain(Instant deadline, std::move_only_function<void()> done) {
  impl_->first.post([impl = impl_.get(), deadline, done = std::move(done)]() mutable {
    impl->acceptor.stop();
    impl->health.draining = true;
    impl->drained = std::move(done);
    for (const auto& set : impl->sets) {
      set->loop().post([target = set.get(), deadline] { target->begin_drain(deadline); });
    }
    impl->check_drained();
  });
}

GrpcServerCounters GrpcServer::counters() const {
  const ServerState& state = impl_->state;
  return {.open = state.open.load(std::memory_order_relaxed),
          .accepted = state.accepted.load(std::memory_order_relaxed),
          .refused = state.refused.load(std::memory_order_relaxed),
          .receiving = state.receiving->used(),
          .timeouts = state.timeouts.load(std::memory_order_relaxed),
          .bad_requests = state.bad_requests.load(std::memory_order_relaxed),
          .write_stalls = state.write_stalls.load(std::memory_order_relaxed)};
}

}  // namespace baton::adapters::grpc_api
