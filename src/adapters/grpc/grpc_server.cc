#include "adapters/grpc/grpc_server.h"

#include <grpc/support/log.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "adapters/grpc/inference_service.h"
#include "adapters/grpc/status.h"
#include "adapters/grpc/workers.h"
#include "health.grpc.pb.h"

namespace baton::adapters::grpc_api {
namespace {

namespace health = grpc::health::v1;
using Status = health::HealthCheckResponse::ServingStatus;

constexpr std::string_view kServiceName = "inference.GRPCInferenceService";
constexpr int kWatchersMax = 256;

struct HealthState {
  Workers& workers;
  const ports::Clock& clock;
  Duration interval;
  std::atomic<int> watchers{0};
  std::atomic<bool> draining{false};
};

// "" and the inference service stand for the server, every other name for a model.
Status status_of(ports::InferenceFront& front, const std::string& service) {
  if (service.empty() || service == kServiceName) {
    return front.server_ready() ? health::HealthCheckResponse::SERVING
                                : health::HealthCheckResponse::NOT_SERVING;
  }
  const ports::ModelReadiness model = front.model_ready(service, std::nullopt);
  if (!model.known) return health::HealthCheckResponse::SERVICE_UNKNOWN;
  return model.ready ? health::HealthCheckResponse::SERVING
                     : health::HealthCheckResponse::NOT_SERVING;
}

// Looks at its service every interval and writes when that has changed. OnCancel, OnDone and
// OnWriteDone run on library threads and only post; the rest runs on the worker.
class Watcher final : public grpc::ServerWriteReactor<health::HealthCheckResponse>,
                      public std::enable_shared_from_this<Watcher> {
 public:
  Watcher(HealthState& state, const GrpcWorker& worker, std::string service)
      : state_(state), worker_(worker), service_(std::move(service)) {}

  static Watcher* start(HealthState& state, const GrpcWorker& worker, const std::string& service) {
    auto watcher = std::make_shared<Watcher>(state, worker, service);
    watcher->self_ = watcher;
    if (state.watchers.fetch_add(1) >= kWatchersMax) {
      watcher->ended_ = true;  // a cancel that follows must not finish it again
      watcher->Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many health watchers"});
    } else {
      watcher->post([](Watcher& self) { self.look(); });
    }
    return watcher.get();
  }

  void OnCancel() override {
    post([](Watcher& self) { self.end({grpc::StatusCode::CANCELLED, "the client has gone"}); });
  }
  void OnWriteDone(bool ok) override {
    post([ok](Watcher& self) {
      self.writing_ = false;
      if (!ok) self.end({grpc::StatusCode::CANCELLED, "the client has gone"});
    });
  }
  void OnDone() override {
    state_.watchers.fetch_sub(1);
    self_.reset();
  }

 private:
  template <class Action>
  void post(Action action) {
    worker_.executor->post([self = shared_from_this(), action] { action(*self); });
  }

  void look() {
    timer_ = 0;
    if (ended_) return;
    if (state_.draining) return end({grpc::StatusCode::UNAVAILABLE, "the server is shutting down"});
    const Status status = status_of(*worker_.front, service_);
    if (!writing_ && (!written_ || status != response_.status())) {
      written_ = writing_ = true;
      response_.set_status(status);
      StartWrite(&response_);
    }
    timer_ = worker_.timers->arm(state_.clock.now() + state_.interval,
                                 [self = shared_from_this()] { self->look(); });
  }

  void end(const grpc::Status& status) {
    if (ended_) return;
    ended_ = true;
    worker_.timers->cancel(timer_);
    Finish(status);
  }

  HealthState& state_;
  const GrpcWorker worker_;
  const std::string service_;
  std::shared_ptr<Watcher> self_;  // until OnDone
  health::HealthCheckResponse response_;
  ports::TimerId timer_ = 0;
  bool written_ = false;
  bool writing_ = false;
  bool ended_ = false;
};

class HealthService final : public health::Health::CallbackService {
 public:
  explicit HealthService(HealthState& state) : state_(state) {}

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const health::HealthCheckRequest* request,
                                  health::HealthCheckResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const GrpcWorker& worker = state_.workers.next();
    worker.executor->post([=, front = worker.front] {
      const Status status = status_of(*front, request->service());
      if (status == health::HealthCheckResponse::SERVICE_UNKNOWN) {
        return reactor->Finish({grpc::StatusCode::NOT_FOUND, "no service or model of that name"});
      }
      response->set_status(status);
      reactor->Finish(grpc::Status::OK);
    });
    return reactor;
  }

  grpc::ServerWriteReactor<health::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext*, const health::HealthCheckRequest* request) override {
    return Watcher::start(state_, state_.workers.next(), request->service());
  }

 private:
  HealthState& state_;
};

std::string listen_address(const GrpcServerOptions& options) {
  const bool ipv6 = options.address.find(':') != std::string::npos;
  return (ipv6 ? "[" + options.address + "]" : options.address) + ":" +
         std::to_string(options.port);
}

void configure(grpc::ServerBuilder& builder, const GrpcServerOptions& options) {
  const auto size = std::clamp<int64_t>(options.message_bytes_max, 1, INT32_MAX);
  builder.SetMaxReceiveMessageSize(static_cast<int>(size));
  builder.SetMaxSendMessageSize(-1);                        // answers are the models' own size
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a taken port is an error
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
  Impl(GrpcServerOptions given, std::vector<GrpcWorker> bindings, const ports::Clock& server_clock)
      : options(std::move(given)), workers(std::move(bindings)), clock(server_clock) {}

  void shut_down(Instant deadline) {
    health_state.draining = true;
    const Duration left = std::max(deadline - clock.now(), Duration());
    server->Shutdown(std::chrono::system_clock::now() + std::chrono::nanoseconds(left.ns()));
  }

  const GrpcServerOptions options;
  Workers workers;
  const ports::Clock& clock;
  HealthState health_state{workers, clock, options.watch_interval};
  HealthService health_service{health_state};
  std::unique_ptr<grpc::Service> inference_service = make_inference_service(workers, clock);
  std::unique_ptr<grpc::Server> server;
  std::thread drain_thread;
};

GrpcServer::GrpcServer(GrpcServerOptions options, std::vector<GrpcWorker> workers,
                       const ports::Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(workers), clock)) {}

GrpcServer::~GrpcServer() {
  if (impl_->drain_thread.joinable()) {
    impl_->drain_thread.join();
  } else if (impl_->server != nullptr) {
    impl_->shut_down(impl_->clock.now());
  }
}

Result<uint16_t, std::string> GrpcServer::listen() {
  // The library writes to stderr what clients do wrong; what matters is told by statuses and
  // errors.
  gpr_set_log_function([](gpr_log_func_args*) {});
  grpc::ServerBuilder builder;
  configure(builder, impl_->options);
  int port = 0;
  const std::string address = listen_address(impl_->options);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(impl_->inference_service.get());
  builder.RegisterService(&impl_->health_service);
  impl_->server = builder.BuildAndStart();
  if (impl_->server == nullptr || port == 0) {
    return fail("cannot listen on " + address + ": the address is in use or not to be had");
  }
  return static_cast<uint16_t>(port);
}

void GrpcServer::drain(Instant deadline, std::move_only_function<void()> done) {
  impl_->drain_thread =
      std::thread([impl = impl_.get(), deadline, done = std::move(done)]() mutable {
        impl->shut_down(deadline);
        done();
      });
}

}  // namespace baton::adapters::grpc_api
