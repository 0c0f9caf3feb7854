#pragma once
// When a batch closes, and who is in it. Pure: `choose_batch` looks, `commit_batch` acts.

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "domain/decision.h"
#include "domain/latency_curve.h"
#include "domain/model.h"
#include "policy/batching/batch_queues.h"

namespace baton::policy {

// What the operator allows: hard bounds.
struct BatchRules {
  uint64_t max_items = 1;
  bool merge = false;    // false: a batch is one call
  Duration max_delay{};  // how long the oldest member may be held back for others
  std::vector<uint32_t> preferred_sizes{};  // ascending
};
[[nodiscard]] BatchRules batch_rules(const ModelConfig& config);

// What is known of the device and the traffic.
struct BatchOutlook {
  const LatencyCurve* curve = nullptr;  // null or empty: greedy to the maximum
  uint64_t paying_items = 0;            // the largest batch worth forming; 0 without a curve
  uint64_t trial_items = 0;             // a larger one to be tried now; 0: none
  double arrivals_per_second = 0;       // items
  uint32_t instances = 1;
};

struct BatchChoice {
  bool run = false;
  bool late = false;  // run: for want of anything that can be served in time
  DecisionReason reason = DecisionReason::kNone;
  KeyIndex key = kNoKey;  // kNoKey: nothing is queued
  uint64_t item_cap = 0;  // run: members are taken by rank while they fit,
  Instant due_from{};     // and are not due before this
  uint64_t items = 0;
  size_t members = 0;
  Instant until = Instant::never();  // wait: ask again then
};

// Moves calls that lead and cannot meet their deadline even alone behind all others, where they run
// only if nothing else waits, until they expire. Amortised O(log n) a call.
void demote_hopeless(BatchQueues& queues, const BatchOutlook& outlook, Instant now);

[[nodiscard]] BatchChoice choose_batch(const BatchQueues& queues, const BatchRules& rules,
                                       const BatchOutlook& outlook, Instant now);
// Takes the members of a choice to run out of the queues, in order of rank. `queues` is as it was
// for the choice.
void commit_batch(BatchQueues& queues, const BatchChoice& choice, std::vector<Slot>& members);

}  // namespace baton::policy
