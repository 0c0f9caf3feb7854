#pragma once

#include <utility>
#include <vector>

#include "ports/engine.h"

namespace baton::ports::testing {

// An engine whose calls end when the test says so. For tests that run on one thread.
class FakeEngine final : public EnginePort {
 public:
  struct Started {
    CallId id;
    EngineCall call;
    EngineEvents* events = nullptr;
    bool ended = false;
  };

  StartedCall start(EngineCall call, EngineEvents& events) override {
    const CallId id(calls_.size() + 1);
    calls_.push_back({id, std::move(call), &events, false});
    return {.id = id, .queue_deadline = queue_deadline_};
  }
  void abort(CallId id, EndReason reason, AbortScope scope) override {
    aborts_.push_back({id, reason, scope});
    Started& call = calls_[id.value() - 1];
    const bool reached = !call.ended && (scope == AbortScope::kAlsoRunning || !running_);
    if (reached)
      end(id, {.reason = reason,
               .result = {},
               .refusal = {.reason = reason, .message = {}},
               .timings = {}});
  }
  [[nodiscard]] EngineStats stats() const override { return {}; }
  [[nodiscard]] std::vector<BatchSizeTotals> batch_totals() const override { return {}; }
  [[nodiscard]] LatencyCurve curve() const override { return {}; }

  // Posts the end to the call's home.
  void end(CallId id, EngineEnd end) {
    Started& call = calls_[id.value() - 1];
    call.ended = true;
    call.call.home->post([id, events = call.events, end = std::move(end)]() mutable {
      events->on_end(id, std::move(end));
    });
  }
  void answer(CallId id, InferResult result = {}) {
    end(id, {.reason = EndReason::kOk, .result = std::move(result), .refusal = {}, .timings = {}});
  }
  void set_queue_deadline(Instant deadline) { queue_deadline_ = deadline; }
  void set_running(bool running) { running_ = running; }  // aborts of queued calls reach nobody

  struct Abort {
    CallId id;
    EndReason reason = EndReason::kOk;
    AbortScope scope = AbortScope::kOnlyQueued;
  };
  [[nodiscard]] const std::vector<Started>& calls() const { return calls_; }
  [[nodiscard]] const std::vector<Abort>& aborts() const { return aborts_; }

 private:
  std::vector<Started> calls_;
  std::vector<Abort> aborts_;
  Instant queue_deadline_ = Instant::never();
  bool running_ = false;
};

}  // namespace baton::ports::testing
