#pragma once
// One model in the simulated world: the real dispatcher, instances that take the time that a curve
// says, and the real permit ledger between them. Mirrors adapters/instances event by event.

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "ports/decision_sink.h"
#include "ports/permit_policy.h"
#include "service/batching/model_dispatcher.h"
#include "sim/scenario.h"
#include "sim/world.h"

namespace baton::sim {

// What several models share.
class SimPermits {
 public:
  SimPermits(World& world, ports::PermitPolicy& policy) : world_(world), policy_(policy) {}

  // True: granted. False: `granted` runs later, in an event of its own.
  bool request(Instant deadline, std::function<void()> granted);
  void give_back();
  [[nodiscard]] bool contended(Instant deadline) const { return policy_.contended(deadline); }

 private:
  World& world_;
  ports::PermitPolicy& policy_;
  std::map<ports::PermitTicket, std::function<void()>> waiting_;
  ports::PermitTicket next_ = 1;
};

// Hears what happens; run.cc puts the checker and the statistics behind it.
class SimListener {
 public:
  virtual ~SimListener() = default;
  virtual void on_batch(const ports::Batch& batch, const ModelConfig& config) = 0;
  // Those that have not ended run again, each alone.
  virtual void on_retried(const ports::Batch& batch) = 0;
  virtual void on_ended(std::vector<ports::EndedCall>& ended) = 0;
};

struct SimModelParts {
  World& world;
  SimPermits& permits;
  SimListener& listener;
  ports::DecisionSink& decisions;
  Duration hand_over;
};

class SimModel {
 public:
  SimModel(const ModelSpec& spec, const SimModelParts& parts, uint64_t seed);
  [[nodiscard]] static service::DispatcherOptions dispatcher_options(const ModelSpec& spec);

  ports::Submitted submit(ports::DispatchedCall& call);
  void abort(ports::CallId id, EndReason reason, ports::AbortScope scope);
  void close();
  [[nodiscard]] uint64_t queued() const { return dispatcher_.queued_calls(); }
  [[nodiscard]] uint64_t running() const { return dispatcher_.running_calls(); }

 private:
  struct Instance {
    ports::Batch batch;
    bool permit = false;
    bool terminated = false;
    EventId pending;  // the run's end, or the time to ask again
  };
  void wake(ports::InstanceIndex index, Duration after);
  void ask(ports::InstanceIndex index);
  void finish(ports::InstanceIndex index);
  void tell();
  void give_back(Instance& instance);
  [[nodiscard]] Duration run_time(uint64_t items);

  const ModelSpec spec_;
  SimModelParts parts_;
  service::ModelDispatcher dispatcher_;
  std::vector<Instance> instances_;
  std::vector<ports::EndedCall> ended_;
  Random random_;
};

}  // namespace baton::sim
