#pragma once
// What a protocol adapter needs of the gateway, typed. One front per worker; every call and every answer is on that worker.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "domain/end_reason.h"
#include "domain/model.h"
#include "domain/request.h"

namespace baton::ports {

using InferToken = Id<struct InferTag>;

struct InferAnswer {
  std::optional<Refusal> refusal;               // or
  std::shared_ptr<const InferRequest> request;  // null when the request was refused before it was understood
  InferResult result;
  std::string model;
  int64_t version = 0;
};

class InferSink {
 public:
  virtual ~InferSink() = default;
  // Exactly once for every infer(), also after cancel(); never from within infer() or cancel(). The sink may be gone after it.
  virtual void on_answer(InferAnswer answer) = 0;
};

struct ModelView {
  const ModelConfig* config = nullptr;  // valid during the call that the view was given to
  std::vector<int64_t> versions;        // all that are ready, ascending
  bool ready = false;                   // the version asked for, or the one that would answer
};

class InferenceFront {
 public:
  virtual ~InferenceFront() = default;

  // `request` as a protocol decodes it: model, version, inputs, outputs, storage and of the context all but `id`. The front
  // checks it against the model, admits it, runs it and answers. `sink` outlives the answer.
  virtual InferToken infer(InferRequest request, InferSink& sink) = 0;
  // The client has gone: queued work is dropped at once. An answered token: no effect.
  virtual void cancel(InferToken token) = 0;
  // A request that a protocol refused before infer(): counted and logged like every other end.
  virtual void record_refused(const RequestContext& context, const std::string& model,
                              const Refusal& refusal) = 0;

  struct Readiness {
    bool ready = false;
    std::string reason;  // why not, naming the models
  };
  [[nodiscard]] virtual Readiness server_ready() = 0;
  // kNotFound for an unknown model or version. Calls `use` before it returns.
  virtual Result<void, Refusal> with_model(
      const std::string& model, std::optional<int64_t> version,
      const std::function<void(const ModelView&)>& use) = 0;
};

}  // namespace baton::ports
