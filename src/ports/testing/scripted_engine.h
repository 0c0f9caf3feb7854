#pragma once

#include <map>
#include <utility>

#include "ports/engine.h"

namespace baton::ports::testing {

// An engine that ends calls when the test says so. Keeps EnginePort's contract: every started call
// ends once, through its home.
class ScriptedEngine final : public EnginePort {
 public:
  StartedCall start(EngineCall call, EngineEvents& events) override {
    const CallId id(++last_);
    calls_.emplace(id.value(), std::pair{std::move(call), &events});
    return {id, queue_deadline};
  }
  void abort(CallId id, EndReason reason, AbortScope scope) override {
    ++aborts;
    if (scope == AbortScope::kOnlyQueued && running) return;
    EngineEnd end;
    end.reason = reason;
    end.refusal = {reason, "aborted", {}};
    finish(id, std::move(end));
  }
  [[nodiscard]] EngineStats stats() const override { return {.queued_calls = calls_.size()}; }
  [[nodiscard]] std::vector<BatchSizeTotals> batch_totals() const override { return {}; }
  [[nodiscard]] LatencyCurve curve() const override { return {}; }

  // Ends the oldest call; false when there is none.
  bool end_first(EngineEnd end) {
    if (calls_.empty()) return false;
    finish(CallId(calls_.begin()->first), std::move(end));
    return true;
  }
  [[nodiscard]] size_t open() const { return calls_.size(); }
  [[nodiscard]] const InferRequest& first_request() const {
    return *calls_.begin()->second.first.request;
  }

  Instant queue_deadline = Instant::never();  // of calls started from now on
  bool running = false;                       // calls are beyond the queue
  int aborts = 0;

 private:
  void finish(CallId id, EngineEnd end) {
    const auto found = calls_.find(id.value());
    if (found == calls_.end()) return;
    const auto [call, sink] = std::move(found->second);
    calls_.erase(found);
    call.home->post([events = sink, id, end = std::move(end)]() mutable {
      events->on_end(id, std::move(end));
    });
  }

  std::map<uint64_t, std::pair<EngineCall, EngineEvents*>> calls_;
  uint64_t last_ = 0;
};

}  // namespace baton::ports::testing
