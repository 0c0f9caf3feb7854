#include "adapters/grpc/grpc_server.h"

#include <absl/synchronization/mutex.h>
#include <grpc/support/log.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "adapters/grpc/health.h"
#include "adapters/grpc/infer_call.h"
#include "adapters/grpc/listener.h"
#include "adapters/grpc/workers.h"

namespace baton::adapters::grpc_api {
namespace {

// Calls that the library may take in while the queue's thread is busy; more wait in the library.
constexpr int kAwaitedInfers = 32;
constexpr int kAwaitedQueries = 4;

void configure(grpc::ServerBuilder& builder, const GrpcServerOptions& options) {
  const auto size = std::clamp<int64_t>(options.message_bytes_max, 1, INT32_MAX);
  builder.SetMaxReceiveMessageSize(static_cast<int>(size));
  builder.SetMaxSendMessageSize(-1);  // answers are the models' own size
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.streams_max);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, options.metadata_bytes_max);
  builder.AddChannelArgument(GRPC_ARG_OPTIMIZATION_TARGET, "latency");
  // Clients ping to keep their connections; Triton's default asks for no more than this.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  // A compressed message is expanded before its size is known: refused, so that none grows beyond
  // the limit.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  grpc::ResourceQuota quota("baton");
  quota.Resize(static_cast<size_t>(options.memory_bytes_max));
  builder.SetResourceQuota(quota);
}

}  // namespace

struct GrpcServer::Impl {
  Impl(GrpcServerOptions given, const std::vector<GrpcWorker>& bindings,
       const ports::Clock& server_clock)
      : options(std::move(given)), workers(bindings, options, server_clock), clock(server_clock) {
    add_inference_methods(methods);
    add_health_methods(methods, health_state);
  }

  void serve(CallQueue& queue) {
    const InferSource infers{*infer_method, queue, workers, clock};
    const QuerySource queries{generic_service, queue, workers, methods, clock};
    for (int i = 0; i < kAwaitedInfers; ++i) InferCall::await(infers);
    for (int i = 0; i < kAwaitedQueries; ++i) QueryCall::await(queries);
    queue.run();
  }

  void shut_down(Instant deadline) {
    listener.stop();
    health_state.draining = true;
    const Duration left = std::max(deadline - clock.now(), Duration());
    server->Shutdown(std::chrono::system_clock::now() + std::chrono::nanoseconds(left.ns()));
    for (const auto& queue : queues) queue->close();
  }

  const GrpcServerOptions options;
  Workers workers;
  const ports::Clock& clock;
  HealthState health_state{clock, options.watch_interval};
  MethodTable methods;
  std::unique_ptr<InferMethod> infer_method = make_infer_method();
  grpc::AsyncGenericService generic_service;
  std::vector<std::unique_ptr<CallQueue>> queues;  // one for each worker
  // The connections' way into the library.
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<grpc::Server> server;  // before the queues end
  Listener listener{
      [this](int socket) {
        grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
        connection.fd = socket;
        acceptor->HandleNewConnection(&connection);
      },
      options.connections_refused};
  std::thread drain_thread;
};

GrpcServer::GrpcServer(GrpcServerOptions options, const std::vector<GrpcWorker>& workers,
                       const ports::Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(options), workers, clock)) {}

GrpcServer::~GrpcServer() {
  if (impl_->drain_thread.joinable()) {
    impl_->drain_thread.join();
  } else if (impl_->server != nullptr) {
    impl_->shut_down(impl_->clock.now());
  }
}

Result<uint16_t, std::string> GrpcServer::listen() {
  // Debian builds the library's locks with a search for cycles, which costs each call a few
  // microseconds.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // The library writes to stderr what clients do wrong; what matters is told by statuses and
  // errors.
  gpr_set_log_function([](gpr_log_func_args*) {});
  grpc::ServerBuilder builder;
  configure(builder, impl_->options);
  impl_->acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  builder.RegisterService(&impl_->infer_method->service());
  builder.RegisterAsyncGenericService(&impl_->generic_service);
  for (size_t i = 0; i < impl_->workers.size(); ++i) {
    impl_->queues.push_back(std::make_unique<CallQueue>(builder.AddCompletionQueue()));
  }
  impl_->server = builder.BuildAndStart();
  if (impl_->server == nullptr) return fail(std::string("the library does not start"));
  auto port = impl_->listener.listen(impl_->options.address, impl_->options.port);
  if (!port.has_value()) return port;
  for (const auto& queue : impl_->queues) impl_->serve(*queue);
  return port;
}

void GrpcServer::drain(Instant deadline, std::move_only_function<void()> done) {
  impl_->drain_thread =
      std::thread([impl = impl_.get(), deadline, done = std::move(done)]() mutable {
        impl->shut_down(deadline);
        done();
      });
}

}  // namespace baton::adapters::grpc_api
