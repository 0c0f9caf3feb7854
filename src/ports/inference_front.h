#pragma once
// What a protocol front end outside the gateway's own HTTP path asks of one worker: typed calls,
// typed answers.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "domain/end_reason.h"
#include "domain/model.h"
#include "domain/request.h"
#include "domain/statistics.h"
#include "ports/log_control.h"
#include "ports/repository_control.h"
#include "ports/shared_memory.h"
#include "ports/trace_control.h"

namespace baton::ports {

// Names one running inference on its worker; 0: it has ended already.
using InferToken = Id<struct InferTokenTag>;

// Who calls, as the transport knows it. The front decides what that means.
struct Caller {
  std::string authorization;  // the header's value as sent; empty for none
  std::string peer;           // address without the port
};

struct InferAnswer {
  std::string model;
  int64_t version = 0;
  InferResult result;  // the requested outputs in the requested order
};

// Called once, on the worker, perhaps before infer() returns. A refusal's reason maps to the
// protocol's status.
using InferSink = std::move_only_function<void(Result<InferAnswer, Refusal>)>;

struct ServerDescription {
  std::string name;
  std::string version;
  std::vector<std::string> extensions;
};

struct ModelDescription {
  std::string name;
  std::vector<std::string> versions;  // that are ready, ascending
  std::string platform;
  std::vector<TensorSpec> inputs;  // dims with the batch dimension, -1 for any
  std::vector<TensorSpec> outputs;
};

struct ModelReadiness {
  bool known = false;
  bool ready = false;
  std::string reason;  // why it is not ready; may be empty
};

// One per worker; all calls on that worker.
class InferenceFront {
 public:
  virtual ~InferenceFront() = default;

  // The caller has filled the context but for id, predicted cost and what follows from the caller's
  // credentials, and has checked that each tensor holds its shape's elements. The front checks the
  // request against the model and does all accounting; what it never saw it cannot count, so a
  // front end reports those by count_refused().
  virtual InferToken infer(const Caller& caller, std::shared_ptr<InferRequest> request,
                           InferSink sink) = 0;
  // The client has gone: the sink is called with kClientGone, perhaps at once. No effect
  // afterwards.
  virtual void cancel(InferToken token) = 0;
  // A call that ended before it could become a typed request, or that is not one: malformed, too
  // large, not offered, not found. `context` is what was known of it.
  virtual void count_refused(const Caller& caller, RequestContext context, std::string_view model,
                             const Refusal& refusal) = 0;

  // Why a caller without the right key is refused. Any thread: a protocol asks before it spends
  // anything on a message, for all that follows but server_ready(). infer() asks again.
  [[nodiscard]] virtual std::optional<Refusal> refuse_caller(const Caller& caller) const = 0;
  [[nodiscard]] virtual bool server_ready() = 0;
  [[nodiscard]] virtual ServerDescription server() = 0;
  [[nodiscard]] virtual ModelReadiness model_ready(std::string_view model,
                                                   std::optional<int64_t> version) = 0;
  [[nodiscard]] virtual Result<ModelDescription, Refusal> model(std::string_view model,
                                                                std::optional<int64_t> version) = 0;
  // Null: the model repository extension is not offered.
  [[nodiscard]] virtual RepositoryControl* repository() = 0;
  // A serialized inference.ModelConfig.
  [[nodiscard]] virtual Result<std::string, Refusal> model_config(
      std::string_view model, std::optional<int64_t> version) = 0;
  // An empty name asks for all models. Errors: kNotFound; kInvalid where nothing is ready.
  [[nodiscard]] virtual Result<std::vector<ModelStatistics>, Refusal> statistics(
      std::string_view model, std::optional<int64_t> version) = 0;
  // Null: it is not offered.
  [[nodiscard]] virtual SharedMemory* shared_memory() = 0;
  [[nodiscard]] virtual LogControl* log_control() = 0;
  [[nodiscard]] virtual TraceControl* trace_control() = 0;
};

}  // namespace baton::ports
