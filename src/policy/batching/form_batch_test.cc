#include "policy/batching/form_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <new>

#include "base/random.h"

namespace {
uint64_t g_allocations = 0;  // in this program, for the test that counts them
}

// The thread sanitizer brings its own and cannot be told to share: the count is not taken there.
#if !__has_feature(thread_sanitizer)
void* operator new(size_t size) {
  ++g_allocations;
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
#endif

namespace baton::policy {
namespace {

const Instant kStart = Instant::from_ns(1'000'000'000);

Instant at_us(int64_t us) {
  return kStart + Duration::us(us);
}

// 1 ms alone, 1.6 ms for 8: batching pays.
LatencyCurve steep_curve() {
  return LatencyCurve({{.batch_size = 1, .duration = Duration::us(1000), .samples = 5},
                       {.batch_size = 8, .duration = Duration::us(1700), .samples = 5}});
}

struct FormBatch : ::testing::Test {
  FormBatch() {
    rules.max_items = 8;
    rules.merge = true;
  }
  Slot push(uint64_t key, QueuedCall call) {
    const Slot slot = next++;
    call.sequence = next;
    if (call.queued == Instant()) call.queued = kStart;
    if (call.queue_deadline.is_never()) call.queue_deadline = call.deadline;
    queues.push(slot, call, key, queues.find_key(key, [](Slot) { return true; }));
    return slot;
  }
  void push_many(uint64_t key, int count) {
    for (int i = 0; i < count; ++i) push(key, {});
  }
  void measured(LatencyCurve measured_curve, uint64_t paying) {
    curve = std::move(measured_curve);
    outlook.curve = &curve;
    outlook.paying_items = paying;
  }
  [[nodiscard]] BatchChoice choose(Instant now = kStart) const {
    return choose_batch(queues, rules, outlook, now);
  }
  std::vector<Slot> form(Instant now = kStart) {
    const BatchChoice choice = choose(now);
    std::vector<Slot> members;
    if (choice.run) commit_batch(queues, choice, members);
    return members;
  }

  BatchQueues queues{RankRule()};
  BatchRules rules;
  BatchOutlook outlook;
  LatencyCurve curve;
  Slot next = 0;
};

TEST_F(FormBatch, HasNothingToSayOfAnEmptyQueue) {
  const BatchChoice choice = choose();
  EXPECT_FALSE(choice.run);
  EXPECT_EQ(choice.key, kNoKey);
  EXPECT_TRUE(choice.until.is_never());
}

TEST_F(FormBatch, MixedShapesDoNotShrinkBatches) {  // server#8156, #3395
  for (int i = 0; i < 8; ++i) push(static_cast<uint64_t>(i % 2), {});
  EXPECT_EQ(form(), (std::vector<Slot>{0, 2, 4, 6}));
  EXPECT_EQ(form(), (std::vector<Slot>{1, 3, 5, 7}));
}

TEST_F(FormBatch, AShapeThatWaitsDoesNotBlockAnotherThatIsFull) {
  rules.max_delay = Duration::ms(50);
  outlook.arrivals_per_second = 1000;
  push(1, {});
  push_many(2, 8);
  EXPECT_EQ(form().size(), 8U);
  EXPECT_EQ(choose().reason, DecisionReason::kWaitForArrivals);
}

TEST_F(FormBatch, TakesTheEarliestDeadlineAcrossKeys) {
  push(1, {.deadline = at_us(90'000)});
  const Slot urgent = push(2, {.deadline = at_us(30'000)});
  push(3, {.deadline = at_us(60'000)});
  EXPECT_EQ(form(), std::vector<Slot>{urgent});
}

TEST_F(FormBatch, TakesTheEarliestDeadlinesOfItsKey) {
  rules.max_items = 2;
  push(1, {.deadline = at_us(90'000)});
  const Slot second = push(1, {.deadline = at_us(40'000)});
  const Slot first = push(1, {.deadline = at_us(30'000)});
  EXPECT_EQ(form(), (std::vector<Slot>{first, second}));
}

TEST_F(FormBatch, TakesTheLargestPreferredSizeThatIsQueued) {  // U139
  rules.max_items = 64;
  rules.preferred_sizes = {2, 4, 16};
  push_many(1, 7);
  EXPECT_EQ(choose().items, 4U);
  EXPECT_EQ(choose().reason, DecisionReason::kPreferredSize);
  push_many(1, 20);
  EXPECT_EQ(choose().items, 16U);
}

TEST_F(FormBatch, BelowEveryPreferredSizeItTakesWhatThereIs) {
  rules.preferred_sizes = {4, 8};
  push_many(1, 3);
  EXPECT_EQ(form().size(), 3U);
}

TEST_F(FormBatch, IsGreedyToTheMaximumWithoutACurve) {
  push_many(1, 20);
  EXPECT_EQ(form().size(), 8U);
}

TEST_F(FormBatch, StopsAtTheSizeThatPays) {
  measured(LatencyCurve({{.batch_size = 1, .duration = Duration::ms(1), .samples = 5}}), 1);
  push_many(1, 5);
  EXPECT_EQ(form().size(), 1U);
}

TEST_F(FormBatch, WithoutMergingABatchIsOneCall) {
  rules.merge = false;
  push(1, {.items = 5});
  push_many(1, 3);
  EXPECT_EQ(form(), std::vector<Slot>{0});
}

TEST_F(FormBatch, ShrinksToMeetTheEarliestDeadlineInIt) {
  measured(steep_curve(), 8);
  for (int i = 0; i < 8; ++i) push(1, {.deadline = at_us(1350)});
  const BatchChoice choice = choose();
  EXPECT_EQ(choice.reason, DecisionReason::kDeadlineBounds);
  EXPECT_EQ(choice.items, 4U);  // 1 ms + 3 * 0.1 ms
}

TEST_F(FormBatch, ACallThatIsLateAnywayDoesNotShrinkTheBatch) {
  measured(steep_curve(), 8);
  push(1, {.deadline = at_us(400)});
  push_many(1, 7);
  EXPECT_EQ(choose().items, 7U);
}

TEST_F(FormBatch, CallsThatWouldMissTheirDeadlineLeaveTheirPlacesToOthers) {
  measured(steep_curve(), 8);
  outlook.arrivals_per_second = 6000;  // more than any size serves
  for (int i = 0; i < 8; ++i) push(1, {.deadline = at_us(1300)});
  for (int i = 0; i < 8; ++i) push(1, {.deadline = at_us(2500)});
  const BatchChoice choice = choose();
  EXPECT_EQ(choice.items, 8U);
  EXPECT_EQ(form().front(), 8U) << "the first eight would all be late in a full batch";
}

TEST_F(FormBatch, HopelessCallsRunOnlyWhenNothingElseWaits) {
  measured(steep_curve(), 8);
  const Slot hopeless = push(1, {.deadline = at_us(500)});
  const Slot fine = push(2, {.deadline = at_us(50'000)});
  demote_hopeless(queues, outlook, kStart);
  EXPECT_EQ(form(), std::vector<Slot>{fine});
  EXPECT_EQ(form(), std::vector<Slot>{hopeless});
}

TEST_F(FormBatch, DoesNotShrinkBelowWhatKeepsUpWithTheArrivals) {
  measured(steep_curve(), 8);
  outlook.arrivals_per_second = 4000;  // 8 / 1.7 ms = 4,700 a second keeps up, 1 / 1 ms does not
  push(1, {.deadline = at_us(1050)});
  for (int i = 0; i < 7; ++i) push(1, {.deadline = at_us(9000)});
  EXPECT_EQ(choose().items, 7U) << "one deadline is not worth seven places";
}

TEST_F(FormBatch, DoesNotWaitUnlessADelayIsAllowed) {
  measured(steep_curve(), 8);
  outlook.arrivals_per_second = 1e6;
  push(1, {});
  EXPECT_EQ(choose().reason, DecisionReason::kNoGainFromWaiting);
}

TEST_F(FormBatch, WaitsWhenTheArrivalRateSaysThatItGains) {
  measured(steep_curve(), 8);
  rules.max_delay = Duration::ms(5);
  outlook.arrivals_per_second = 4000;
  push(1, {});
  const BatchChoice choice = choose();
  EXPECT_EQ(choice.reason, DecisionReason::kWaitForArrivals);
  EXPECT_GT(choice.until, kStart);
  EXPECT_LE(choice.until, at_us(5000));
}

TEST_F(FormBatch, ALongDelayCostsNothingAtLowLoad) {  // server#3321
  measured(steep_curve(), 8);
  rules.max_delay = Duration::ms(100);
  outlook.arrivals_per_second = 50;  // 20 ms apart; a run takes 1 ms
  push(1, {});
  EXPECT_TRUE(choose().run);
}

TEST_F(FormBatch, TheDelayCountsFromTheOldestMember) {
  measured(steep_curve(), 8);
  rules.max_delay = Duration::ms(5);
  outlook.arrivals_per_second = 4000;
  push(1, {.queued = kStart});
  push(1, {.queued = at_us(4900)});
  EXPECT_EQ(choose(at_us(4700)).until, at_us(4950));  // one arrival is expected
  EXPECT_TRUE(choose(at_us(4950)).run);               // none is before the delay ends
  EXPECT_EQ(choose(at_us(5000)).reason, DecisionReason::kDelayOver);
}

TEST_F(FormBatch, ADeadlineEndsTheWait) {
  measured(steep_curve(), 8);
  rules.max_delay = Duration::ms(50);
  outlook.arrivals_per_second = 4000;
  push(1, {.deadline = at_us(2000)});
  EXPECT_LE(choose().until, at_us(300));  // a batch of 8 takes 1.7 ms
  EXPECT_TRUE(choose(at_us(300)).run);
}

TEST_F(FormBatch, NeverSplitsACallOfSeveralItems) {
  push(1, {.items = 5});
  push(1, {.items = 5});
  const BatchChoice choice = choose();
  EXPECT_EQ(choice.members, 1U);
  EXPECT_EQ(choice.items, 5U);
}

TEST_F(FormBatch, ALaterCallFillsTheRoomThatALargeOneLeaves) {
  push(1, {.items = 5});
  const Slot large = push(1, {.items = 5});
  push(1, {.items = 3});
  EXPECT_EQ(form(), (std::vector<Slot>{0, 2}));
  EXPECT_EQ(form(), std::vector<Slot>{large}) << "it leads now, and so is not passed over again";
}

TEST_F(FormBatch, AnUrgentLevelGoesFirstButNotForEver) {
  const RankRule rule;
  rules.max_items = 1;
  const Slot low = push(1, {.level = 3, .queued = kStart});
  // The urgent level alone would keep the instance busy; the low call is served within the bound.
  Instant now = kStart;
  while (true) {
    push(1, {.level = 1, .queued = now});
    if (form(now).front() == low) break;
    now = now + Duration::ms(10);
    ASSERT_LE(now - kStart, rule.patience + rule.ageing * 2 + Duration::ms(10));
  }
  EXPECT_GE(now - kStart, rule.ageing * 2);
}

TEST_F(FormBatch, CallsWithoutADeadlineAreNotStarvedByThoseWithOne) {  // core starvation
  rules.max_items = 1;
  const Slot patient = push(1, {.queued = kStart});
  Instant now = kStart;
  while (true) {
    push(1, {.queued = now, .deadline = now + Duration::ms(20)});
    if (form(now).front() == patient) break;
    now = now + Duration::ms(10);
    ASSERT_LE(now - kStart, RankRule().patience + Duration::ms(10));
  }
}

TEST_F(FormBatch, AChoiceIsNotAnAct) {
  push_many(1, 3);
  const BatchChoice first = choose();
  const BatchChoice second = choose();
  EXPECT_EQ(first.members, second.members);
  EXPECT_EQ(queues.calls(), 3U);
}

TEST_F(FormBatch, EqualHashesOfDifferentLayoutsDoNotMix) {
  push(7, {});
  const KeyIndex other = queues.find_key(7, [](Slot) { return false; });
  EXPECT_EQ(other, kNoKey);
  queues.push(next++, {.sequence = 9, .queued = kStart}, 7, other);
  EXPECT_EQ(queues.keys().size(), 2U);
  EXPECT_EQ(form().size(), 1U);
  EXPECT_EQ(form().size(), 1U);
}

// Against a list that is searched in full: order, sums and expiry, under pushes and removals.
TEST(BatchQueues, AgreeWithASimpleList) {
  struct Entry {
    QueuedCall call;
    uint64_t key = 0;
  };
  Random random(11);
  BatchQueues queues{RankRule()};
  std::map<Slot, Entry> list;
  Instant now = kStart;
  for (uint64_t step = 1; step < 20'000; ++step) {
    now = now + Duration::us(static_cast<int64_t>(random.below(2000)));
    if (random.chance(list.size() < 100 ? 0.6 : 0.4)) {
      Slot slot = 0;
      while (list.contains(slot)) ++slot;
      Entry entry{{.sequence = step,
                   .level = static_cast<uint32_t>(1 + random.below(3)),
                   .items = 1 + random.below(4),
                   .bytes = random.below(100),
                   .queued = now},
                  random.below(5)};
      if (random.chance(0.5)) {
        entry.call.deadline = now + Duration::ms(static_cast<int64_t>(random.below(300)));
        entry.call.queue_deadline = entry.call.deadline;
      }
      queues.push(slot, entry.call, entry.key,
                  queues.find_key(entry.key, [](Slot) { return true; }));
      list[slot] = entry;
    } else if (!list.empty()) {
      auto victim = list.begin();
      std::advance(victim, static_cast<int64_t>(random.below(list.size())));
      queues.remove(victim->first);
      list.erase(victim);
    }
    uint64_t items = 0;
    uint64_t bytes = 0;
    Instant first = Instant::never();
    Instant expires = Instant::never();
    for (const auto& [slot, entry] : list) {
      items += entry.call.items;
      bytes += entry.call.bytes;
      first = std::min(first, rank_of(entry.call, RankRule()));
      expires = std::min(expires, entry.call.queue_deadline);
    }
    ASSERT_EQ(queues.calls(), list.size());
    ASSERT_EQ(queues.items(), items);
    ASSERT_EQ(queues.bytes(), bytes);
    ASSERT_EQ(queues.first_rank(), first);
    ASSERT_EQ(queues.first_due(now).has_value(), expires <= now);
  }
}

TEST(BatchQueues, AllocateNothingInTheSteadyState) {
  BatchQueues queues{RankRule()};
  const BatchRules rules{.max_items = 8, .merge = true, .max_delay = {}, .preferred_sizes = {}};
  std::vector<Slot> members;
  members.reserve(64);
  Instant now = kStart;
  const auto round = [&] {
    for (Slot slot = 0; slot < 32; ++slot) {
      now = now + Duration::us(10);
      const uint64_t key = slot % 3;
      queues.push(slot, {.sequence = slot, .queued = now, .queue_deadline = now + Duration::ms(50)},
                  key, queues.find_key(key, [](Slot) { return true; }));
    }
    while (queues.calls() > 0) commit_batch(queues, choose_batch(queues, rules, {}, now), members);
  };
  for (int i = 0; i < 200; ++i) round();
  const uint64_t before = g_allocations;
  for (int i = 0; i < 200; ++i) round();
  EXPECT_EQ(g_allocations, before);
}

}  // namespace
}  // namespace baton::policy
