#include "policy/batching/form_batch.h"

#include <algorithm>

#include "base/check.h"

namespace baton::policy {
namespace {

// Calls that do not fit are passed over by later ones that do, but not without end: the scan stays
// O(batch), and the head of a key is always a member, so that no call is passed over once it leads.
constexpr size_t kMostPassedOver = 32;
// Keys looked at before the instance waits. More keys than this are urgent in turn.
constexpr size_t kMostKeys = 8;

Duration run_time(const BatchOutlook& outlook, uint64_t items) {
  return outlook.curve == nullptr ? Duration() : outlook.curve->predict(items);
}

struct Fill {
  uint64_t items = 0;
  size_t members = 0;
  Instant oldest = Instant::never();
  Instant tightest = Instant::never();  // deadline among the members that can still meet theirs
};

// Visits the members that a batch of at most `cap` items takes, in order of rank. `visit` returns
// false to stop before one.
template <class Visit>
void walk(const BatchQueues& queues, KeyIndex key, uint64_t cap, Visit visit) {
  uint64_t items = 0;
  size_t passed_over = 0;
  for (const Ranked& entry : queues.members(key)) {
    const QueuedCall& call = queues.call(entry.index);
    const bool fits = items == 0 || items + call.items <= cap;
    if (!fits && ++passed_over > kMostPassedOver) return;
    if (!fits) continue;
    if (!visit(entry.index, call)) return;
    items += call.items;
    if (items >= cap) return;
  }
}

Fill measure(const BatchQueues& queues, KeyIndex key, uint64_t cap, const BatchOutlook& outlook,
             Instant now) {
  Fill fill;
  walk(queues, key, cap, [&](Slot, const QueuedCall& call) {
    fill.items += call.items;
    ++fill.members;
    fill.oldest = std::min(fill.oldest, call.queued);
    // A call that is late even alone does not make the others' batch smaller.
    if (call.deadline < fill.tightest && now + run_time(outlook, call.items) <= call.deadline) {
      fill.tightest = call.deadline;
    }
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

// The largest prefix by rank that meets the earliest deadline in it.
Fill shrink_to_deadline(const BatchQueues& queues, KeyIndex key, uint64_t cap,
                        const BatchOutlook& outlook, Instant now) {
  Fill fill;
  walk(queues, key, cap, [&](Slot, const QueuedCall& call) {
    Fill larger = fill;
    larger.items += call.items;
    ++larger.members;
    larger.oldest = std::min(larger.oldest, call.queued);
    if (now + run_time(outlook, call.items) <= call.deadline) {
      larger.tightest = std::min(larger.tightest, call.deadline);
    }
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

BatchChoice run_now(KeyIndex key, uint64_t cap, const Fill& fill, DecisionReason reason) {
  return {.run = true,
          .reason = reason,
          .key = key,
          .item_cap = cap,
          .items = fill.items,
          .members = fill.members};
}

BatchChoice choose_in_key(const BatchQueues& queues, KeyIndex key, const BatchRules& rules,
                          const BatchOutlook& outlook, Instant now) {
  if (!rules.merge) {
    const QueuedCall& head = queues.call(queues.members(key).begin()->index);
    return run_now(key, 1, {.items = head.items, .members = 1}, DecisionReason::kBatchFull);
  }
  const uint64_t queued = queues.items_of(key);
  const Target target = target_size(queued, rules, outlook);
  Fill fill = measure(queues, key, target.items, outlook, now);
  const bool measured = outlook.curve != nullptr && !outlook.curve->empty();
  if (measured && now + run_time(outlook, fill.items) > fill.tightest) {
    Fill smaller = shrink_to_deadline(queues, key, target.items, outlook, now);
    const uint64_t floor = std::min(sustainable_size(outlook), target.items);
    if (smaller.items < floor) smaller = measure(queues, key, floor, outlook, now);
    return run_now(key, smaller.items, smaller, DecisionReason::kDeadlineBounds);
  }
  if (target.reason == DecisionReason::kPreferredSize || fill.items < queued ||
      fill.items >= target.items) {
    return run_now(key, target.items, fill, target.reason);
  }
  const Instant delay_end = fill.oldest + rules.max_delay;
  const Instant latest = std::min(delay_end, fill.tightest - run_time(outlook, target.items));
  if (now >= latest) {
    const bool delayed = rules.max_delay > Duration() && now >= delay_end;
    return run_now(key, target.items, fill,
                   delayed ? DecisionReason::kDelayOver : DecisionReason::kNoGainFromWaiting);
  }
  const Duration wait = worthwhile_wait(fill.items, target.items, latest - now, outlook);
  if (wait <= Duration()) {
    return run_now(key, target.items, fill, DecisionReason::kNoGainFromWaiting);
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

BatchChoice choose_batch(const BatchQueues& queues, const BatchRules& rules,
                         const BatchOutlook& outlook, Instant now) {
  BatchChoice waiting;
  size_t looked_at = 0;
  for (const Ranked& entry : queues.keys()) {
    if (++looked_at > kMostKeys) break;
    const BatchChoice choice = choose_in_key(queues, entry.index, rules, outlook, now);
    if (choice.run) return choice;
    if (choice.until < waiting.until) waiting = choice;
  }
  return waiting;
}

void commit_batch(BatchQueues& queues, const BatchChoice& choice, std::vector<Slot>& members) {
  members.clear();
  walk(queues, choice.key, choice.item_cap, [&](Slot slot, const QueuedCall&) {
    if (members.size() == choice.members) return false;
    members.push_back(slot);
    return true;
  });
  BATON_CHECK(members.size() == choice.members);
  for (Slot slot : members) queues.remove(slot);
}

}  // namespace baton::policy
