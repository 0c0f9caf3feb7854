#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "domain/model.h"
#include "policy/admission/admission.h"
#include "ports/clock.h"
#include "ports/executor.h"
#include "ports/inference_front.h"
#include "ports/model_directory.h"
#include "service/access/access_log.h"
#include "service/telemetry/telemetry.h"

namespace baton::service {

// What one worker gives its gateway; all of it outlives the gateway.
struct GatewayPorts {
  const ports::Clock& clock;
  ports::Executor& executor;
  ports::Timers& timers;
  const ports::ModelDirectory& models;
  Telemetry& telemetry;
  AccessLog& access_log;
};

struct GatewayOptions {
  size_t worker = 0;  // index into the telemetry, and the high bits of request ids
  policy::AdmissionLimits limits;
  Duration max_timeout = Duration::s(3600);  // a request without a deadline gets this one
};

// One worker's requests, from a typed request to its one answer. Used on that worker only.
class Gateway final : public ports::InferenceFront {
 public:
  Gateway(const GatewayPorts& ports, const GatewayOptions& options);
  ~Gateway() override;

  ports::InferToken infer(InferRequest request, ports::InferSink& sink) override;
  void cancel(ports::InferToken token) override;
  void record_refused(const RequestContext& context, const std::string& model,
                      const Refusal& refusal) override;
  Readiness server_ready() override;
  Result<void, Refusal> with_model(
      const std::string& model, std::optional<int64_t> version,
      const std::function<void(const ports::ModelView&)>& use) override;

  [[nodiscard]] const ports::Directory& directory();
  [[nodiscard]] size_t in_flight() const { return calls_.size(); }
  [[nodiscard]] size_t worker() const { return options_.worker; }

 private:
  class LiveCall;
  using ModelPtr = std::shared_ptr<const ports::ModelVersion>;

  [[nodiscard]] Result<ModelPtr, Refusal> find_model(const std::string& name,
                                                     std::optional<int64_t> version);
  Result<void, Refusal> start(LiveCall& call, InferRequest& request);
  void arm(LiveCall& call);
  void on_timer(uint64_t token);
  void on_end(LiveCall& call, ports::EngineEnd end);
  // The only way out: exactly once for every call.
  void settle(LiveCall& call, EndReason reason, ports::InferAnswer answer,
              const ports::CallTimings& timings);
  void refuse(LiveCall& call, Refusal refusal, const ports::CallTimings& timings);

  GatewayPorts ports_;
  GatewayOptions options_;
  std::shared_ptr<const ports::Directory> directory_;
  uint64_t directory_generation_ = 0;
  uint64_t next_token_ = 1;
  policy::AdmissionSnapshot reserved_;
  std::unordered_map<uint64_t, std::unique_ptr<LiveCall>> calls_;  // by token; never iterated
};

}  // namespace baton::service
