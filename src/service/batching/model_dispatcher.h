#pragma once
// One model version's queue and instances: the batching policy with its state. Knows no lock and no
// clock.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "domain/latency_curve.h"
#include "domain/model.h"
#include "policy/batching/form_batch.h"
#include "policy/batching/release_order.h"
#include "policy/estimate/arrival_rate.h"
#include "policy/estimate/latency_fit.h"
#include "policy/estimate/size_trial.h"
#include "ports/decision_sink.h"
#include "ports/dispatcher.h"
#include "service/batching/batch_totals.h"

namespace baton::service {

struct DispatcherOptions {
  ModelConfig config;  // its name, batching part and instance count
  QueueLimits limits;
  LatencyCurve curve;  // empty: not measured
  policy::RankRule rank;
  // A run predicted to be shorter than this stays on the thread that submitted it. Waking a thread
  // on a Linux server and being answered costs 10 to 50 µs; zero: never inline.
  Duration hand_over = Duration::us(20);
};

class ModelDispatcher final : public ports::Dispatcher {
 public:
  ModelDispatcher(DispatcherOptions options, ports::DecisionSink& decisions);

  ports::Submitted submit(ports::DispatchedCall& call, Instant now) override;
  void will_ask(ports::InstanceIndex instance) override;
  ports::NextBatch next(ports::InstanceIndex instance, Instant now, ports::Batch& batch,
                        std::vector<ports::EndedCall>& ended) override;
  void finish(ports::InstanceIndex instance, ports::Batch& batch,
              Result<ports::BatchResult, ports::RunFailure>& outcome, Instant now,
              std::vector<ports::EndedCall>& ended) override;
  Aborted abort(ports::CallId id, EndReason reason, ports::AbortScope scope, Instant now,
                std::vector<ports::EndedCall>& ended) override;
  ports::InstanceIndex add_instance(Instant now) override;
  ports::NextBatch remove_instance(ports::InstanceIndex instance, Instant now) override;
  void stop_accepting(EndReason reason) override;
  void close(EndReason reason, Instant now, std::vector<ports::EndedCall>& ended) override;

  [[nodiscard]] size_t queued_calls() const override { return queues_.calls(); }
  [[nodiscard]] size_t running_calls() const override { return running_; }
  [[nodiscard]] ports::EngineStats stats() const override;
  [[nodiscard]] std::vector<BatchSizeTotals> batch_totals() const override {
    return batch_totals_.nonzero();
  }
  [[nodiscard]] Instant most_urgent() const override {
    // Those that are served in order rank by their arrival.
    return ordered() ? queues_.first_rank() + options_.rank.patience : queues_.first_rank();
  }
  [[nodiscard]] const std::string& refusal_text(DecisionReason limit) const override;

  [[nodiscard]] uint64_t queued_items() const { return queues_.items(); }
  [[nodiscard]] LatencyCurve curve() const override { return curve_.curve(); }

 private:
  // kHeld: has its answer, which waits for those of earlier calls.
  enum class SlotState : uint8_t { kFree, kQueued, kRunning, kAborted, kHeld };
  struct CallSlot {
    ports::DispatchedCall call;
    SlotState state = SlotState::kFree;
    ports::InstanceIndex instance = 0;
    bool alone = false;  // not to be joined: its batch failed
  };
  // kAsking: free, and a thread is on its way to next(). kGone: removed, its number is free.
  enum class InstanceState : uint8_t { kAsking, kIdle, kBusy, kGone };
  struct Instance {
    InstanceState state = InstanceState::kAsking;
    Instant ask_again = Instant::never();  // of an idle one
    Instant started;
    uint32_t live_members = 0;
  };
  struct Limit {
    DecisionReason reason = DecisionReason::kNone;
    EndReason end = EndReason::kQueueFull;
  };
  struct Wake {
    bool wake = false;
    ports::InstanceIndex instance = 0;
    bool runs = false;  // the policy says that a batch would be formed now
  };

  Instant advance(Instant now);
  policy::QueuedCall describe(const InferRequest& request, Instant now) const;
  [[nodiscard]] const QueuePolicy& level_policy(uint32_t level) const;
  [[nodiscard]] Limit limit_reached(const policy::QueuedCall& call) const;
  ports::Submitted refuse(const InferRequest& request, Limit limit);
  policy::Slot take_slot();
  ports::CallId make_id(policy::Slot slot);
  policy::KeyIndex key_of(const InferRequest& request) const;
  policy::BatchOutlook outlook() const;
  policy::BatchChoice choose();
  Wake wake_one();
  [[nodiscard]] bool is_free(ports::InstanceIndex instance) const;
  size_t count(InstanceState state) const;
  [[nodiscard]] size_t instances() const { return instances_.size() - count(InstanceState::kGone); }
  void expire(std::vector<ports::EndedCall>& ended);
  void fill(ports::InstanceIndex instance, const policy::BatchChoice& choice, ports::Batch& batch);
  // Where the answer of a call that ran is to be put: among those that end now, or among those that
  // are held back while earlier ones have none.
  ports::EndedCall& place_answer(policy::Slot slot, std::vector<ports::EndedCall>& ended);
  void end_held(policy::Slot slot, EndReason reason, std::vector<ports::EndedCall>& ended);
  void release(std::vector<ports::EndedCall>& ended);
  [[nodiscard]] bool ordered() const { return options_.config.batching.preserve_ordering; }
  void end_queued(policy::Slot slot, EndReason reason, std::vector<ports::EndedCall>& ended);
  [[nodiscard]] bool retries_alone(
      const ports::Batch& batch,
      const Result<ports::BatchResult, ports::RunFailure>& outcome) const;
  void requeue_alone(policy::Slot slot);
  void learn(uint64_t items, Duration duration);
  [[nodiscard]] Duration drain_time() const;
  void record(Decision decision);
  // Begins one call into the dispatcher; what it brings is made only when somebody keeps it.
  template <class Make>
  void enter(Make make);
  void refuse_from_now(EndReason reason);

  const DispatcherOptions options_;
  const policy::BatchRules rules_;
  ports::DecisionSink& decisions_;
  const bool inputs_recorded_;
  std::array<std::string, 7> texts_;  // of refusals, by limit

  policy::BatchQueues queues_;
  policy::ArrivalRate arrivals_;
  policy::CurveTracker curve_;
  policy::SizeTrial trial_;
  double seconds_per_item_ = 0;  // as served, EWMA; for advice when there is no curve

  policy::ReleaseOrder order_;          // with preserve_ordering alone
  std::vector<ports::EndedCall> held_;  // by slot, as far as there was one

  std::vector<CallSlot> slots_;
  std::vector<policy::Slot> free_slots_;
  std::vector<policy::Slot> chosen_;  // of the batch being formed
  std::vector<Instance> instances_;
  size_t running_ = 0;
  BatchTotals batch_totals_;
  ports::EngineStats stats_;  // what was done; what is held is filled in when asked
  bool closed_ = false;
  EndReason closed_because_ = EndReason::kShuttingDown;
  Instant now_;
  uint64_t next_call_ = 1;
  uint64_t next_batch_ = 1;
  uint64_t next_decision_ = 1;
  uint64_t entries_ = 0;
};

}  // namespace baton::service
