#include "policy/sequences/sequence_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/random.h"

namespace baton::policy {
namespace {

Instant at(int64_t ms) {
  return Instant::from_ns(ms * 1'000'000);
}

SequenceStep step(uint64_t id, bool start = false, bool end = false) {
  return {.id = {.number = id}, .start = start, .end = end};
}

// A table whose changes a test reads one event at a time.
class Table {
 public:
  explicit Table(SequenceLimits limits) : table(limits) {}
  StepRefusal arrive(StepNumber number, const SequenceStep& described, int64_t ms = 0) {
    changes = {};
    return table.arrive(number, described, at(ms), changes);
  }
  void ended(StepNumber number, bool succeeded = true, int64_t ms = 0) {
    changes = {};
    table.ended(number, succeeded, at(ms), changes);
  }
  bool leave(StepNumber number) {
    changes = {};
    return table.leave(number, at(0), changes);
  }
  [[nodiscard]] std::vector<StepNumber> run() const {
    std::vector<StepNumber> numbers;
    for (const auto& each : changes.run) numbers.push_back(each.step);
    return numbers;
  }
  SequenceTable table;
  SequenceChanges changes;
};

using Numbers = std::vector<StepNumber>;

TEST(SequenceTable, RunsTheStepsOfASequenceOneAfterTheOther) {
  Table t({.live = 2});
  EXPECT_EQ(t.arrive(1, step(7, true)), StepRefusal::kNone);
  EXPECT_EQ(t.run(), Numbers{1});
  EXPECT_TRUE(t.changes.run[0].begins);
  t.arrive(2, step(7));
  t.arrive(3, step(7, false, true));
  EXPECT_EQ(t.run(), Numbers{});
  t.ended(1);
  EXPECT_EQ(t.run(), Numbers{2});
  EXPECT_FALSE(t.changes.run[0].begins);
  t.ended(2);
  t.ended(3);
  EXPECT_EQ(t.changes.over.size(), 1U);
  EXPECT_EQ(t.table.live(), 0U);
  EXPECT_EQ(t.arrive(4, step(7)), StepRefusal::kUnknown);
}

TEST(SequenceTable, LetsSequencesBeginInTheirOrderAsPlacesGetFree) {
  Table t({.live = 1, .beginnings = 2});
  t.arrive(1, step(1, true, true));
  t.arrive(2, step(2, true));
  t.arrive(3, step(3, true, true));
  EXPECT_EQ(t.arrive(4, step(4, true)), StepRefusal::kTooManyBeginnings);
  t.arrive(5, step(2, false, true));  // behind its own beginning, which waits
  EXPECT_EQ(t.run(), Numbers{});
  t.ended(1);
  EXPECT_EQ(t.run(), Numbers{2});
  t.ended(2);
  EXPECT_EQ(t.run(), Numbers{5});
  t.ended(5);
  EXPECT_EQ(t.run(), Numbers{3});
}

TEST(SequenceTable, BeginsALiveSequenceAnewInItsTurn) {
  Table t({.live = 1});
  t.arrive(1, step(1, true));
  t.arrive(2, step(1, true));
  t.ended(1);
  ASSERT_EQ(t.run(), Numbers{2});
  EXPECT_TRUE(t.changes.run[0].begins);
  // Behind its end a sequence waits for a new place, after those who wait already.
  t.arrive(3, step(1, false, true));
  EXPECT_EQ(t.arrive(4, step(1)), StepRefusal::kUnknown);
  t.arrive(5, step(1, true));
  t.arrive(6, step(9, true, true));
  t.ended(2);
  t.ended(3);
  EXPECT_EQ(t.run(), Numbers{6});
  t.ended(6);
  EXPECT_EQ(t.run(), Numbers{5});
}

TEST(SequenceTable, LosesWhatWaitsBehindAStepThatFails) {
  Table t({.live = 1});
  t.arrive(1, step(1, true));
  t.ended(1);
  for (StepNumber number : {2U, 3U, 4U}) t.arrive(number, step(1));
  t.arrive(5, step(1, true));
  t.ended(2, false);
  EXPECT_EQ(t.changes.lost, (Numbers{3, 4}));
  EXPECT_EQ(t.run(), Numbers{5});
  EXPECT_TRUE(t.changes.over.empty());
  t.ended(5, false);  // a beginning that fails leaves no sequence
  EXPECT_EQ(t.changes.over.size(), 1U);
  EXPECT_EQ(t.arrive(6, step(1)), StepRefusal::kUnknown);
}

TEST(SequenceTable, KeepsASequenceWhoseLastStepFailed) {
  Table t({.live = 1});
  t.arrive(1, step(1, true));
  t.ended(1);
  t.arrive(2, step(1, false, true));
  t.ended(2, false);
  EXPECT_EQ(t.arrive(3, step(1, false, true)), StepRefusal::kNone);
  t.ended(3);
  EXPECT_EQ(t.table.live(), 0U);
}

TEST(SequenceTable, LetsStepsLeaveWhileTheyWait) {
  Table t({.live = 1});
  t.arrive(1, step(1, true));
  t.arrive(2, step(1));
  t.arrive(3, step(1));
  t.arrive(4, step(2, true));
  t.arrive(5, step(2));
  EXPECT_FALSE(t.leave(1));  // it runs
  EXPECT_FALSE(t.leave(99));
  EXPECT_TRUE(t.leave(2));
  EXPECT_EQ(t.changes.lost, Numbers{3});
  EXPECT_TRUE(t.leave(4));
  EXPECT_EQ(t.changes.lost, Numbers{5});
  EXPECT_EQ(t.changes.over.size(), 1U);
  EXPECT_EQ(t.table.beginnings(), 0U);
  EXPECT_EQ(t.arrive(6, step(2)), StepRefusal::kUnknown);
  // A beginning anew that leaves ends what was before it.
  t.arrive(7, step(1, true));
  t.leave(7);
  EXPECT_EQ(t.arrive(8, step(1)), StepRefusal::kUnknown);
  t.ended(1);
  EXPECT_EQ(t.table.live(), 0U);
}

TEST(SequenceTable, EndsWhatIsIdleAndSaysSo) {
  Table t({.live = 1, .idle = Duration::ms(10)});
  t.arrive(1, step(1, true), 0);
  EXPECT_TRUE(t.table.next_expiry().is_never());
  t.ended(1, true, 5);
  EXPECT_EQ(t.table.next_expiry(), at(15));
  t.arrive(2, step(1), 14);
  t.ended(2, true, 20);
  t.arrive(3, step(2, true), 21);
  EXPECT_EQ(t.run(), Numbers{});
  t.changes = {};
  t.table.expire(at(29), t.changes);
  EXPECT_EQ(t.run(), Numbers{});
  t.table.expire(at(30), t.changes);
  EXPECT_EQ(t.run(), Numbers{3});
  EXPECT_EQ(t.arrive(4, step(1), 30), StepRefusal::kIdle);
  EXPECT_EQ(t.arrive(5, step(1, true), 30), StepRefusal::kNone);
  t.leave(5);
  EXPECT_EQ(t.arrive(6, step(1), 30), StepRefusal::kUnknown);
  EXPECT_EQ(t.table.idle_ended(), 1U);
}

TEST(SequenceTable, RemembersABoundedNumberOfIdleIds) {
  Table t({.live = 10'000, .idle = Duration::ms(1)});
  for (uint64_t id = 1; id <= 5000; ++id) {
    t.arrive(id, step(id, true), 0);
    t.ended(id, true, 0);
  }
  EXPECT_EQ(t.arrive(9001, step(5000), 1), StepRefusal::kIdle);
  EXPECT_EQ(t.arrive(9002, step(1), 1), StepRefusal::kUnknown);
}

TEST(SequenceTable, StopsAndCloses) {
  Table t({.live = 2});
  t.arrive(1, step(1, true));
  t.ended(1);
  t.arrive(2, step(2, true));
  t.arrive(3, step(2));
  t.arrive(4, step(3, true));  // waits for a place
  t.changes = {};
  t.table.stop_accepting(t.changes);
  EXPECT_EQ(t.run(), Numbers{4});  // the idle one has made room
  EXPECT_EQ(t.arrive(5, step(4, true)), StepRefusal::kClosed);
  t.arrive(6, step(2));
  t.changes = {};
  t.table.close(t.changes);
  EXPECT_EQ(t.changes.lost, Numbers{3});
  t.ended(2);
  t.ended(4);
  EXPECT_EQ(t.table.live(), 0U);
  EXPECT_EQ(t.table.waiting_steps() + t.table.running_steps(), 0U);
}

// A model of the promises alone, beside the table, under random events.
class Reference {
 public:
  struct Sequence {
    std::deque<StepNumber> waiting;
    std::optional<StepNumber> running;
  };

  explicit Reference(uint64_t seed) : random_(seed) {}

  void play(int events) {
    for (int i = 0; i < events; ++i) {
      now_ += static_cast<int64_t>(random_.below(4));
      event();
      check();
    }
    SequenceChanges changes;
    table_.close(changes);
    follow(changes);
    while (!running_.empty()) finish(running_.front(), true);
    EXPECT_TRUE(steps_.empty());
    EXPECT_EQ(table_.live(), 0U);
  }

 private:
  void event() {
    const uint64_t kind = random_.below(10);
    if (kind < 5 || (running_.empty() && kind < 8)) return arrive();
    if (kind < 8) return finish(running_[random_.below(running_.size())], !random_.chance(0.2));
    SequenceChanges changes;
    if (kind == 8) {
      table_.expire(at(now_), changes);
    } else if (!steps_.empty()) {
      const StepNumber number =
          std::next(steps_.begin(), static_cast<std::ptrdiff_t>(random_.below(steps_.size())))
              ->first;
      const bool runs = std::ranges::find(running_, number) != running_.end();
      EXPECT_EQ(table_.leave(number, at(now_), changes), !runs);
      if (!runs) steps_.erase(number);
    }
    follow(changes);
  }
  void arrive() {
    SequenceChanges changes;
    const uint64_t id = 1 + random_.below(6);
    const StepNumber number = next_++;
    const auto refusal = table_.arrive(number, step(id, random_.chance(0.4), random_.chance(0.3)),
                                       at(now_), changes);
    if (refusal == StepRefusal::kNone) steps_.emplace(number, id);
    follow(changes);
  }
  void finish(StepNumber number, bool succeeded) {
    SequenceChanges changes;
    std::erase(running_, number);
    steps_.erase(number);
    table_.ended(number, succeeded, at(now_), changes);
    follow(changes);
  }
  void follow(const SequenceChanges& changes) {
    for (const auto& run : changes.run) {
      ASSERT_TRUE(steps_.contains(run.step)) << "a step runs that has left";
      const uint64_t id = steps_.at(run.step);
      for (const StepNumber other : running_) {
        ASSERT_NE(steps_.at(other), id) << "two steps of one sequence run";
      }
      ASSERT_GT(run.step, last_run_[id]) << "steps run out of order";
      last_run_[id] = run.step;
      running_.push_back(run.step);
    }
    for (const StepNumber lost : changes.lost) {
      ASSERT_EQ(steps_.erase(lost), 1U) << "a step is lost that has left";
      ASSERT_TRUE(std::ranges::find(running_, lost) == running_.end());
    }
  }
  void check() {
    ASSERT_EQ(table_.running_steps(), running_.size());
    ASSERT_EQ(table_.waiting_steps() + table_.running_steps(), steps_.size());
    ASSERT_LE(table_.live(), 3U);
    ASSERT_LE(table_.waiting_steps(), 8U);
    // Nobody waits to begin while there is a place.
    ASSERT_TRUE(table_.beginnings() == 0 || table_.live() == 3U);
  }

  Random random_;
  SequenceTable table_{{.live = 3, .beginnings = 4, .steps = 8, .idle = Duration::ms(20)}};
  int64_t now_ = 0;
  StepNumber next_ = 1;
  std::map<StepNumber, uint64_t> steps_;  // that have not left, with their ids
  std::vector<StepNumber> running_;
  std::map<uint64_t, StepNumber> last_run_;
};

TEST(SequenceTable, KeepsItsPromisesUnderRandomEvents) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Reference(seed).play(1000);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace baton::policy
