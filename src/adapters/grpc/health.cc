#include "adapters/grpc/health.h"

#include <string_view>

#include "health.pb.h"

namespace baton::adapters::grpc_api {
namespace {

namespace health = grpc::health::v1;
using Serving = health::HealthCheckResponse::ServingStatus;

constexpr std::string_view kServiceName = "inference.GRPCInferenceService";
constexpr int kWatchersMax = 256;

// "" and the inference service stand for the server, every other name for a model.
bool is_server(const std::string& service) {
  return service.empty() || service == kServiceName;
}

// Probes have no key; which models there are is told to callers with one.
Result<void, Refusal> admit_to(const std::string& service, const Call& call) {
  if (is_server(service)) return {};
  return admit(call.metadata(), call.caller(), *call.worker().front);
}

Serving serving_of(ports::InferenceFront& front, const std::string& service) {
  if (is_server(service)) {
    return front.server_ready() ? health::HealthCheckResponse::SERVING
                                : health::HealthCheckResponse::NOT_SERVING;
  }
  const ports::ModelReadiness model = front.model_ready(service, std::nullopt);
  if (!model.known) return health::HealthCheckResponse::SERVICE_UNKNOWN;
  return model.ready ? health::HealthCheckResponse::SERVING
                     : health::HealthCheckResponse::NOT_SERVING;
}

Status check(Call& call, const health::HealthCheckRequest& request,
             health::HealthCheckResponse& response) {
  const auto admitted = admit_to(request.service(), call);
  if (!admitted.has_value()) return call.refused("", admitted.error());
  const Serving status = serving_of(*call.worker().front, request.service());
  if (status == health::HealthCheckResponse::SERVICE_UNKNOWN) {
    return call.refused("", {EndReason::kNotFound, "no service or model of that name", {}});
  }
  response.set_status(status);
  return {};
}

// Looks at its service every interval and writes when that has changed. On the worker.
class Watcher final : public std::enable_shared_from_this<Watcher> {
 public:
  Watcher(HealthState& state, std::shared_ptr<Call> call, std::string service)
      : state_(state), call_(std::move(call)), service_(std::move(service)) {}
  ~Watcher() { state_.watchers.fetch_sub(1); }

  static void start(HealthState& state, const std::shared_ptr<Call>& call) {
    health::HealthCheckRequest request;
    if (!parse(call->request(), request)) {
      return call->refuse_counted(
          {EndReason::kInvalid, "the request is not a " + request.GetTypeName(), {}});
    }
    const auto admitted = admit_to(request.service(), *call);
    if (!admitted.has_value()) return call->refuse_counted(admitted.error());
    const int others = state.watchers.fetch_add(1);
    const auto watcher = std::make_shared<Watcher>(state, call, request.service());
    if (others >= kWatchersMax) {
      return watcher->end(
          call->refused("", {EndReason::kOverloaded, "too many health watchers", {}}));
    }
    call->on_cancel([watcher] { watcher->client_gone(); });
    watcher->look();
  }

 private:
  void client_gone() { end({StatusCode::kCancelled, "the client has gone"}); }

  void look() {
    timer_ = 0;
    if (ended_) return;
    if (state_.draining) return end({StatusCode::kUnavailable, "the server is shutting down"});
    const Serving status = serving_of(*call_->worker().front, service_);
    if (!writing_ && (!written_ || status != response_.status())) {
      written_ = writing_ = true;
      response_.set_status(status);
      call_->write(message_of(response_.SerializeAsString()), [self = shared_from_this()](bool ok) {
        self->writing_ = false;
        if (self->ended_) return self->call_->finish(self->end_status_);
        if (!ok) self->client_gone();
      });
    }
    timer_ = call_->worker().loop->arm(state_.clock.now() + state_.interval,
                                       [self = shared_from_this()] { self->look(); });
  }

  void end(const Status& status) {
    if (ended_) return;
    ended_ = true;
    call_->worker().loop->cancel(timer_);
    if (!writing_) return call_->finish(status);
    end_status_ = status;  // once the message has left
  }

  HealthState& state_;
  const std::shared_ptr<Call> call_;
  const std::string service_;
  health::HealthCheckResponse response_;
  Status end_status_;
  ports::TimerId timer_ = 0;
  bool written_ = false;
  bool writing_ = false;
  bool ended_ = false;
};

}  // namespace

void add_health_methods(MethodTable& methods, HealthState& state) {
  methods.offered["/grpc.health.v1.Health/Check"] =
      unary<health::HealthCheckRequest, health::HealthCheckResponse>(check, false);
  methods.offered["/grpc.health.v1.Health/Watch"] = {
      .begin = [&state](const std::shared_ptr<Call>& call) { Watcher::start(state, call); },
      .keyed = false};
}

}  // namespace baton::adapters::grpc_api
