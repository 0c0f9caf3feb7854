#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/byte_budget.h"
#include "base/result.h"
#include "domain/model.h"
#include "policy/admission/admission.h"
#include "ports/clock.h"
#include "ports/decision_sink.h"
#include "ports/executor.h"
#include "ports/job_runner.h"
#include "ports/log_control.h"
#include "ports/model_directory.h"
#include "ports/shared_memory.h"
#include "ports/trace_control.h"
#include "service/access/access_log.h"
#include "service/gateway/side_work.h"
#include "service/telemetry/telemetry.h"

namespace baton::service {

using GatewayToken = Id<struct GatewayTokenTag>;

struct GatewayAnswer {
  std::optional<Refusal> refusal;               // or
  std::shared_ptr<const InferRequest> request;  // null when the request was refused early
  InferResult result;
  std::string model;
  int64_t version = 0;  // 0: none was resolved
};

// How a sink rendered a result.
struct Rendering {
  bool later = false;              // not yet: the sink says Gateway::rendered() when it has
  std::optional<Refusal> refusal;  // it cannot, and the request ends with this
};

class GatewaySink {
 public:
  virtual ~GatewaySink() = default;
  // A result before it is settled. At most once, before on_answer().
  virtual Rendering render(const std::shared_ptr<const InferRequest>& request,
                           const InferResult& result, const ports::ModelVersion& served) {
    static_cast<void>(request);
    static_cast<void>(result);
    static_cast<void>(served);
    return {};
  }
  // Exactly once for every infer() and expect(), also after cancel(); never from within infer(),
  // expect() or cancel(). The sink may be gone after it.
  virtual void on_answer(GatewayAnswer answer) = 0;
};

struct ModelView {
  std::shared_ptr<const ports::ModelVersion>
      served;                           // the version asked for, or the one that would answer
  std::vector<int64_t> ready_versions;  // of the model, ascending
  [[nodiscard]] bool ready() const { return served->state == ModelState::kReady; }
};

// What a client is told of a version that is not ready: its state, and why if it failed.
[[nodiscard]] Refusal not_ready(const ports::ModelVersion& version);
[[nodiscard]] inline Refusal not_ready(const ModelView& view) {
  return not_ready(*view.served);
}

struct ServerReadiness {
  bool ready = false;
  std::string reason;  // why not, naming the models
};
[[nodiscard]] ServerReadiness server_readiness(const ports::Directory& directory);

// What one worker gives its gateway; all of it outlives the gateway.
struct GatewayPorts {
  const ports::Clock& clock;
  ports::Executor& executor;
  ports::Timers& timers;
  const ports::ModelDirectory& models;
  Telemetry& telemetry;
  AccessLog& access_log;
  ports::DecisionSink* decisions = nullptr;      // of admission; null: not recorded
  ByteBudget* answers = nullptr;                 // of all workers; null: without limit
  ports::SharedMemory* shared_memory = nullptr;  // null: not offered
  ports::JobRunner* copiers =
      nullptr;  // of large tensors in shared memory; null: copied on the loop
  ports::LogControl* log_control = nullptr;  // null: settings of the log are not offered
  ports::TraceControl* traces = nullptr;     // null: not offered
};

// Tensors in shared memory above this are copied by a job: this many take a fifth of a millisecond.
inline constexpr uint64_t kMostCopiedOnLoop = 1 << 20;

struct GatewayOptions {
  size_t worker = 0;  // index into the telemetry, and the high bits of request ids
  policy::AdmissionLimits limits;
  Duration max_timeout = Duration::s(3600);       // a request without a deadline gets this one
  uint64_t shared_input_bytes_max = 64ULL << 20;  // of one request's inputs in shared memory
};

// One worker's requests, from a typed request to its one answer. Used on that worker only.
class Gateway {
 public:
  Gateway(const GatewayPorts& ports, const GatewayOptions& options);
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  // Nobody else's: it is completed here, and not changed any more once an engine has it.
  using RequestPtr = std::shared_ptr<InferRequest>;

  // `request` as a protocol decodes it: model, version, inputs, outputs, storage, and of the
  // context all but `id`. Checked against the model, admitted, run and answered. `sink` outlives
  // the answer.
  GatewayToken infer(RequestPtr request, GatewaySink& sink);
  // A request that is decoded off the loop: admitted now, so that it counts against the limits, its
  // deadline holds and it can be cancelled. Ends like one of infer(), which decoded() makes of it.
  // `context` gets its id. Error: not admitted; nothing was begun.
  [[nodiscard]] Result<GatewayToken, Refusal> expect(RequestContext& context, std::string model,
                                                     GatewaySink& sink);
  // What came of it; may answer from within. A request that has ended meanwhile: no effect.
  void decoded(GatewayToken token, Result<RequestPtr, Refusal> request);
  // A rendering that was to come later is done; answers from within. As above: perhaps no effect.
  void rendered(GatewayToken token, std::optional<Refusal> refusal);
  // An answer of so many bytes is about to wait for its client: keeps them counted until it goes.
  // Error: kOverloaded.
  [[nodiscard]] Result<Storage, Refusal> hold_answer(uint64_t bytes);
  // The client has gone: queued work is dropped at once. An answered token: no effect.
  void cancel(GatewayToken token);
  // A request that a protocol refused before infer(): counted and logged like every other end.
  void record_refused(const RequestContext& context, std::string_view model,
                      const Refusal& refusal);

  [[nodiscard]] ServerReadiness server_ready() { return server_readiness(directory()); }
  // Errors: kNotFound, or kNotReady when the model has no version at all. Valid during this turn.
  [[nodiscard]] Result<ModelView, Refusal> view(const std::string& model,
                                                std::optional<int64_t> version);

  // Of one version, of a model's ready versions, or with an empty name of all models' ready
  // versions. Errors: kNotFound; kInvalid where nothing that is asked for is ready.
  [[nodiscard]] Result<std::vector<ModelStatistics>, Refusal> statistics(
      const std::string& model, std::optional<int64_t> version);

  [[nodiscard]] ports::SharedMemory* shared_memory() const { return ports_.shared_memory; }
  [[nodiscard]] ports::LogControl* log_control() const { return ports_.log_control; }
  [[nodiscard]] ports::TraceControl* traces() const { return ports_.traces; }
  // Names of the protocol's extensions that are offered.
  [[nodiscard]] std::vector<std::string_view> extensions() const;

  [[nodiscard]] const ports::Directory& directory();
  [[nodiscard]] size_t in_flight() const { return calls_.size(); }
  [[nodiscard]] size_t worker() const { return options_.worker; }

 private:
  class LiveCall;
  using ModelPtr = std::shared_ptr<const ports::ModelVersion>;

  [[nodiscard]] Result<ModelPtr, Refusal> find_model(const std::string& name,
                                                     std::optional<int64_t> version);
  LiveCall& begin(std::string model, GatewaySink& sink);
  [[nodiscard]] RequestId request_id(uint64_t token) const {
    return RequestId((uint64_t{options_.worker} << 48) | token);
  }
  Result<void, Refusal> start(LiveCall& call, RequestPtr& request);
  // shared_memory.cc. Inputs: true when a job reads them and decoded() will go on; outputs: when a
  // job writes them and copied() will.
  Result<bool, Refusal> read_inputs(LiveCall& call, RequestPtr& request);
  Result<bool, Refusal> write_outputs(LiveCall& call);
  void copied(uint64_t token, Result<InferResult, Refusal> result);
  void render(LiveCall& call);
  [[nodiscard]] std::optional<Refusal> refuse_entry(const RequestContext& context, uint64_t items,
                                                    Instant now);
  // Error: not within the limits or the deadline. `items`: 0 when they are not known yet.
  Result<void, Refusal> reserve(LiveCall& call, RequestContext& context, uint64_t items);
  void release(LiveCall& call);
  // Error: it would be more than may wait for clients.
  [[nodiscard]] std::optional<Refusal> classify(const InferRequest& request, InferResult& result,
                                                const ModelConfig& config);
  void arm(LiveCall& call);
  void on_timer(uint64_t token);
  void on_end(LiveCall& call, ports::EngineEnd end);
  void finish(LiveCall& call, std::optional<Refusal> refusal);
  void refuse_soon(LiveCall& call, Refusal refusal);
  void trace(const LiveCall& call, EndReason reason, const ports::CallTimings& timings,
             Instant now);
  // The only way out: exactly once for every call.
  void settle(LiveCall& call, EndReason reason, GatewayAnswer answer,
              const ports::CallTimings& timings);
  void refuse(LiveCall& call, Refusal refusal, const ports::CallTimings& timings);

  GatewayPorts ports_;
  GatewayOptions options_;
  std::shared_ptr<const ports::Directory> directory_;
  uint64_t directory_generation_ = 0;
  uint64_t next_token_ = 1;
  policy::AdmissionSnapshot reserved_;
  uint64_t next_decision_ = 1;
  SideWork copying_;
  std::unordered_map<uint64_t, std::unique_ptr<LiveCall>> calls_;  // by token; never iterated
};

}  // namespace baton::service
