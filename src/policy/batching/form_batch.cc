#include "policy/batching/form_batch.h"

#include <algorithm>

#include "base/check.h"

namespace baton::policy {
namespace {

// Calls that do not fit are passed over by later ones that do, but not without end: the scan stays
// O(batch), and a call that leads its key is not passed over for want of room.
constexpr size_t kMostPassedOver = 32;
// Calls whose deadline the batch would miss are passed over too. Those that wait for their end are
// as many as arrive during a run, about a batch.
constexpr size_t kMostMissed = 256;
// Keys looked at before the instance waits. More keys than this are urgent in turn.
constexpr size_t kMostKeys = 8;
// A batch that is filled only with calls it is in time for must not miss them all by a hair.
constexpr int64_t kSafetyParts = 8;  // an eighth of the run

Duration run_time(const BatchOutlook& outlook, uint64_t items) {
  return outlook.curve == nullptr ? Duration() : outlook.curve->predict(items);
}

struct Fill {
  uint64_t items = 0;
  size_t members = 0;
  Instant oldest = Instant::never();
  Instant tightest = Instant::never();  // the earliest deadline
};

// Which calls a batch takes, in order of rank: while they fit, and are not due before `due_from`.
struct Fit {
  uint64_t cap = 0;
  Instant due_from;
};

// `visit` returns false to stop before a member.
template <class Visit>
void walk(const BatchQueues& queues, KeyIndex key, const Fit& fit, Visit visit) {
  uint64_t items = 0;
  size_t passed_over = 0;
  size_t missed = 0;
  for (const Ranked& entry : queues.members(key)) {
    const QueuedCall& call = queues.call(entry.index);
    const bool misses = call.deadline < fit.due_from;
    const bool fits = items == 0 || items + call.items <= fit.cap;
    if (misses && ++missed > kMostMissed) return;
    if (!fits && ++passed_over > kMostPassedOver) return;
    if (misses || !fits) continue;
    if (!visit(entry.index, call)) return;
    items += call.items;
    if (items >= fit.cap) return;
  }
}

void add(Fill& fill, const QueuedCall& call) {
  fill.items += call.items;
  ++fill.members;
  fill.oldest = std::min(fill.oldest, call.queued);
  fill.tightest = std::min(fill.tightest, call.deadline);
}

Fill measure(const BatchQueues& queues, KeyIndex key, const Fit& fit) {
  Fill fill;
  walk(queues, key, fit, [&](Slot, const QueuedCall& call) {
    add(fill, call);
    return true;
  });
  return fill;
}

// The smallest measured size at which the instances keep up with the arrivals; the largest that
// pays when none does. A batch below it, formed to save one deadline, lets the queue grow and costs
// the deadlines of all who come later.
uint64_t sustainable_size(const BatchOutlook& outlook) {
  for (const CurvePoint& point : outlook.curve->points()) {
    const double rate = static_cast<double>(point.batch_size) * outlook.instances /
                        std::max(point.duration.seconds(), 1e-9);
    if (rate >= outlook.arrivals_per_second) return point.batch_size;
  }
  return std::max<uint64_t>(outlook.paying_items, 1);
}

// The largest prefix by rank that meets the earliest deadline in it; one call at least.
Fill shrink_to_deadline(const BatchQueues& queues, KeyIndex key, const Fit& fit,
                        const BatchOutlook& outlook, Instant now) {
  Fill fill;
  walk(queues, key, fit, [&](Slot, const QueuedCall& call) {
    Fill larger = fill;
    add(larger, call);
    const bool meets = now + run_time(outlook, larger.items) <= larger.tightest;
    if (fill.members > 0 && !meets) return false;
    fill = larger;
    return true;
  });
  return fill;
}

struct Target {
  uint64_t items = 0;
  DecisionReason reason = DecisionReason::kBatchFull;
};

// How many items a batch of this key may hold now.
Target target_size(uint64_t queued, const BatchRules& rules, const BatchOutlook& outlook) {
  const auto preferred = std::ranges::upper_bound(rules.preferred_sizes, queued);
  if (preferred != rules.preferred_sizes.begin()) {
    const uint64_t size =
        *(preferred - 1);  // U139: the largest preferred that is queued, not the smallest
    return {std::min(size, rules.max_items), DecisionReason::kPreferredSize};
  }
  const bool tries = outlook.trial_items > 0 && queued >= outlook.trial_items;
  if (tries && rules.preferred_sizes.empty()) {
    return {std::min(outlook.trial_items, rules.max_items), DecisionReason::kTrial};
  }
  uint64_t size = rules.max_items;
  if (outlook.paying_items > 0) size = std::min(size, outlook.paying_items);
  return {std::max<uint64_t>(size, 1), DecisionReason::kBatchFull};
}

// How long to wait for a batch that serves more items a second than one that runs now, or zero. The
// wait counts as time that the instance is taken: waiting for k more items pays when (k / rate +
// T(n + k)) / (n + k) < T(n) / n.
Duration worthwhile_wait(uint64_t queued, uint64_t most, Duration allowed,
                         const BatchOutlook& outlook) {
  if (outlook.arrivals_per_second <= 0 || queued >= most) return {};
  const double gap = 1 / outlook.arrivals_per_second;
  const bool measured = outlook.curve != nullptr && !outlook.curve->empty();
  if (!measured) {
    return gap <= allowed.seconds() ? Duration::from_seconds(gap) : Duration();
  }
  double best = run_time(outlook, queued).seconds() / static_cast<double>(queued);
  Duration wait;
  for (uint64_t size = queued + 1;; size = std::min(size * 2, most)) {
    const double idle = gap * static_cast<double>(size - queued);
    if (idle > allowed.seconds()) break;
    const double per_item = (idle + run_time(outlook, size).seconds()) / static_cast<double>(size);
    if (per_item < best) {
      best = per_item;
      wait = Duration::from_seconds(idle);
    }
    if (size == most) break;
  }
  return wait;
}

BatchChoice run_now(KeyIndex key, const Fit& fit, const Fill& fill, DecisionReason reason) {
  return {.run = true,
          .reason = reason,
          .key = key,
          .item_cap = fit.cap,
          .due_from = fit.due_from,
          .items = fill.items,
          .members = fill.members};
}

// A batch of everything that fits would miss the earliest deadline in it. Either it becomes
// smaller, or, where that would let the queue grow, it is filled with calls that it is in time for:
// serving those that are nearly late first would make everybody late in turn.
BatchChoice keep_deadlines(const BatchQueues& queues, KeyIndex key, Fit fit,
                           const BatchOutlook& outlook, Instant now) {
  const Fill smaller = shrink_to_deadline(queues, key, fit, outlook, now);
  const uint64_t floor = std::min(sustainable_size(outlook), fit.cap);
  if (smaller.items < floor) {
    const Duration run = run_time(outlook, floor);
    const Fit in_time{.cap = floor, .due_from = now + run + run / kSafetyParts};
    const Fill others = measure(queues, key, in_time);
    if (others.items > smaller.items) {
      return run_now(key, in_time, others, DecisionReason::kDeadlineBounds);
    }
  }
  fit.cap = smaller.items;
  return run_now(key, fit, smaller, DecisionReason::kDeadlineBounds);
}

BatchChoice choose_in_key(const BatchQueues& queues, KeyIndex key, const BatchRules& rules,
                          const BatchOutlook& outlook, Instant now) {
  if (!rules.merge) {
    const QueuedCall& head = queues.call(queues.members(key).begin()->index);
    return run_now(key, {.cap = 1, .due_from = {}}, {.items = head.items, .members = 1},
                   DecisionReason::kBatchFull);
  }
  const uint64_t queued = queues.items_of(key);
  const Target target = target_size(queued, rules, outlook);
  Fit fit{.cap = target.items, .due_from = now + run_time(outlook, 1)};
  Fill fill = measure(queues, key, fit);
  if (fill.members == 0) {  // nobody here can be served in time: the predictions may be wrong
    fit.due_from = {};
    BatchChoice late =
        run_now(key, fit, measure(queues, key, fit), DecisionReason::kDeadlineBounds);
    late.late = true;
    return late;
  }
  const bool measured = outlook.curve != nullptr && !outlook.curve->empty();
  if (measured && now + run_time(outlook, fill.items) > fill.tightest) {
    return keep_deadlines(queues, key, fit, outlook, now);
  }
  const bool fixed = target.reason != DecisionReason::kBatchFull;
  if (fixed || fill.items < queued || fill.items >= target.items) {
    return run_now(key, fit, fill, target.reason);
  }
  const Instant delay_end = fill.oldest + rules.max_delay;
  const Instant latest = std::min(delay_end, fill.tightest - run_time(outlook, target.items));
  if (now >= latest) {
    const bool delayed = rules.max_delay > Duration() && now >= delay_end;
    return run_now(key, fit, fill,
                   delayed ? DecisionReason::kDelayOver : DecisionReason::kNoGainFromWaiting);
  }
  const Duration wait = worthwhile_wait(fill.items, target.items, latest - now, outlook);
  if (wait <= Duration()) {
    return run_now(key, fit, fill, DecisionReason::kNoGainFromWaiting);
  }
  return {.reason = DecisionReason::kWaitForArrivals,
          .key = key,
          .items = fill.items,
          .members = fill.members,
          .until = std::min(latest, now + wait)};
}

}  // namespace

BatchRules batch_rules(const ModelConfig& config) {
  BatchRules rules;
  rules.max_items = std::max<uint64_t>(config.max_batch_size, 1);
  rules.merge = config.batches() && config.batching.enabled;
  rules.max_delay = config.batching.max_delay;
  rules.preferred_sizes = config.batching.preferred_sizes;
  std::ranges::sort(rules.preferred_sizes);
  return rules;
}

void demote_hopeless(BatchQueues& queues, const BatchOutlook& outlook, Instant now) {
  const Instant soonest = now + run_time(outlook, 1);
  while (const auto first = queues.first_by_rank()) {
    if (queues.demoted(*first) || queues.call(*first).deadline >= soonest) return;
    queues.demote(*first);
  }
}

BatchChoice choose_batch(const BatchQueues& queues, const BatchRules& rules,
                         const BatchOutlook& outlook, Instant now) {
  BatchChoice waiting;
  BatchChoice late;
  size_t looked_at = 0;
  for (const Ranked& entry : queues.keys()) {
    if (++looked_at > kMostKeys) break;
    const BatchChoice choice = choose_in_key(queues, entry.index, rules, outlook, now);
    if (choice.run && !choice.late) return choice;
    if (choice.late && !late.run) late = choice;
    if (!choice.run && choice.until < waiting.until) waiting = choice;
  }
  return waiting.key == kNoKey ? late : waiting;
}

void commit_batch(BatchQueues& queues, const BatchChoice& choice, std::vector<Slot>& members) {
  members.clear();
  const Fit fit{.cap = choice.item_cap, .due_from = choice.due_from};
  walk(queues, choice.key, fit, [&](Slot slot, const QueuedCall&) {
    if (members.size() == choice.members) return false;
    members.push_back(slot);
    return true;
  });
  BATON_CHECK(members.size() == choice.members);
  for (Slot slot : members) queues.remove(slot);
}

}  // namespace baton::policy
