#include "adapters/instances/sequence_engine.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "adapters/instances/instance_engine.h"
#include "base/random.h"
#include "ports/testing/loop_executor.h"
#include "ports/testing/manual_clock.h"
#include "ports/testing/recording_events.h"
#include "ports/testing/scripted_engine.h"
#include "ports/testing/steady_clock.h"
#include "service/batching/model_dispatcher.h"
#include "service/batching/permits.h"
#include "service/sequences/sequence_keeper.h"
#include "service/telemetry/decision_ring.h"

namespace baton::adapters {
namespace {

using ports::AbortScope;

ModelConfig config_of(bool state) {
  ModelConfig config;
  config.name = "m";
  config.max_batch_size = 4;
  config.batching.enabled = true;
  config.sequences.emplace().idle = Duration::ms(100);
  if (!state) return config;
  config.sequences->states = {
      {.input = "s",
       .output = "t",
       .type = DataType::kInt32,
       .dims = {1},
       .first = {.dims = {1}},
       .first_bytes = std::make_shared<const std::string>(sizeof(int32_t), '\0')}};
  return config;
}

std::unique_ptr<ports::Sequencer> keeper_of(bool state) {
  service::SequenceKeeperOptions options;
  options.config = config_of(state);
  return std::make_unique<service::SequenceKeeper>(std::move(options));
}

std::shared_ptr<InferRequest> request(uint64_t id, bool start, bool end) {
  auto made = std::make_shared<InferRequest>();
  made->sequence = {.id = {.number = id}, .start = start, .end = end};
  return made;
}

struct Bench {
  ports::CallId start(uint64_t id, bool begins = false, bool ends = false) {
    return engine.start({.request = request(id, begins, ends), .home = &loop}, events).id;
  }
  void end_first(EndReason reason = EndReason::kOk) {
    ports::EngineEnd end;
    end.reason = reason;
    ASSERT_TRUE(below.end_first(std::move(end)));
    loop.run_ready();
  }
  EndReason reason_of(ports::CallId id) { return events.end_of(id).reason; }

  ports::testing::ManualClock clock;
  ports::testing::LoopExecutor loop;
  ports::testing::RecordingEvents events;
  ports::testing::ScriptedEngine below;
  SequenceEngine engine{keeper_of(false), below, clock};
};

TEST(SequenceEngine, GivesStepsToTheEngineBelowInTheirTurn) {
  Bench bench;
  const ports::CallId first = bench.start(1, true);
  const ports::CallId second = bench.start(1, false, true);
  bench.start(2, true);
  EXPECT_EQ(bench.below.open(), 2U);
  EXPECT_EQ(bench.engine.stats().queued_calls, 3U);
  bench.end_first();
  EXPECT_TRUE(bench.events.ended(first));
  EXPECT_FALSE(bench.events.ended(second));
  bench.end_first();
  bench.end_first();
  EXPECT_EQ(bench.reason_of(second), EndReason::kOk);
  EXPECT_EQ(bench.engine.stats().queued_calls, 0U);
  EXPECT_EQ(bench.engine.stats().sequences->live, 1U);
}

TEST(SequenceEngine, RefusesNeverFromWithinStart) {
  Bench bench;
  const ports::CallId unknown = bench.start(1);
  EXPECT_FALSE(bench.events.ended(unknown));
  bench.loop.run_ready();
  EXPECT_EQ(bench.reason_of(unknown), EndReason::kInvalid);
  EXPECT_EQ(bench.below.open(), 0U);
}

TEST(SequenceEngine, EndsStepsThatAreAbortedWhileTheyWaitAndThoseBehindThem) {
  Bench bench;
  const ports::CallId first = bench.start(1, true);
  const ports::CallId second = bench.start(1);
  const ports::CallId third = bench.start(1);
  bench.engine.abort(second, EndReason::kDeadlineQueued, AbortScope::kOnlyQueued);
  EXPECT_FALSE(bench.events.ended(second));
  bench.loop.run_ready();
  EXPECT_EQ(bench.reason_of(second), EndReason::kDeadlineQueued);
  EXPECT_EQ(bench.reason_of(third), EndReason::kEngineFailed);
  EXPECT_EQ(bench.below.aborts, 0);
  bench.engine.abort(first, EndReason::kClientGone, AbortScope::kAlsoRunning);
  bench.loop.run_ready();
  EXPECT_EQ(bench.reason_of(first), EndReason::kClientGone);
  EXPECT_EQ(bench.below.aborts, 1);
  bench.engine.abort(first, EndReason::kClientGone, AbortScope::kAlsoRunning);  // idempotent
  bench.loop.run_ready();
  EXPECT_EQ(bench.events.count(), 3U);
}

TEST(SequenceEngine, PassesTheQueueDeadlineOfAStepThatBeginsAtOnce) {
  Bench bench;
  bench.below.queue_deadline = Instant::from_ns(5);
  const auto begin = [&](uint64_t id, bool begins) {
    return bench.engine.start({.request = request(id, begins, false), .home = &bench.loop},
                              bench.events);
  };
  EXPECT_EQ(begin(1, true).queue_deadline, Instant::from_ns(5));
  EXPECT_TRUE(begin(1, false).queue_deadline.is_never());
  for (int i = 0; i < 2; ++i) bench.end_first();
}

TEST(SequenceEngine, EndsWhatIsIdleAndLetsOthersBegin) {
  Bench bench;
  for (uint64_t id = 1; id <= 4; ++id) bench.start(id, true);
  const ports::CallId waits = bench.start(5, true);
  for (int i = 0; i < 4; ++i) bench.end_first();
  EXPECT_EQ(bench.below.open(), 0U);
  EXPECT_EQ(bench.engine.end_idle(), bench.clock.now() + Duration::ms(100));
  bench.clock.advance(Duration::ms(100));
  EXPECT_TRUE(bench.engine.end_idle().is_never());
  EXPECT_EQ(bench.below.open(), 1U);
  bench.end_first();
  EXPECT_EQ(bench.reason_of(waits), EndReason::kOk);
  EXPECT_EQ(bench.engine.stats().sequences->idle_ended, 4U);
}

TEST(SequenceEngine, LetsAllBeginWhenNoMoreIsExpected) {
  Bench bench;
  for (uint64_t id = 1; id <= 6; ++id) bench.start(id, true);
  EXPECT_EQ(bench.below.open(), 4U);
  bench.engine.expect_no_more();
  EXPECT_EQ(bench.below.open(), 6U);
  for (int i = 0; i < 6; ++i) bench.end_first();
}

TEST(SequenceEngine, DrainsByItsDeadline) {
  Bench bench;
  const ports::CallId runs = bench.start(1, true);
  const ports::CallId waits = bench.start(1);
  bench.engine.drain(bench.clock.now());
  const ports::CallId late = bench.start(2, true);
  bench.loop.run_ready();
  EXPECT_EQ(bench.reason_of(waits), EndReason::kShuttingDown);
  EXPECT_EQ(bench.reason_of(late), EndReason::kShuttingDown);
  EXPECT_FALSE(bench.events.ended(runs));
  bench.end_first();
  bench.engine.drain(Instant::never());  // nothing is left: at once
}

// -- many threads

// t = s + 1; fails now and then.
class Adder final : public ports::RuntimeInstance {
 public:
  explicit Adder(uint64_t seed) : random_(seed) {}
  Result<ports::BatchResult, ports::RunFailure> run(
      std::span<const InferRequest* const> members) override {
    if (random_.chance(0.01)) return fail(ports::RunFailure{.message = "bad luck"});
    ports::BatchResult batch;
    for (const InferRequest* member : members) {
      auto value = std::make_shared<int32_t>();
      std::memcpy(value.get(), member->inputs.back().data.data(), sizeof *value);
      ++*value;
      InferResult& result = batch.results.emplace_back();
      result.outputs.push_back({.name = "t",
                                .type = DataType::kInt32,
                                .shape = {1, 1},
                                .data = std::as_bytes(std::span(value.get(), 1))});
      result.storage.push_back(std::move(value));
    }
    return batch;
  }
  void terminate() override {}

 private:
  Random random_;
};

// Checks of each of its sequences that what succeeds counts on from what succeeded before.
class Client final : public ports::EngineEvents {
 public:
  Client(SequenceEngine& engine, uint64_t number) : engine_(engine), number_(number) {}
  void on_end(ports::CallId id, ports::EngineEnd end) override {
    const Sent sent = sent_.at(id.value());
    sent_.erase(id.value());
    ++ended_;
    if (end.reason != EndReason::kOk) {
      ++failed_;
      return;
    }
    int32_t value = 0;
    std::memcpy(&value, end.result.outputs.at(0).data.data(), sizeof value);
    int32_t& last = counted_[sent.sequence];
    if (value != (sent.start ? 1 : last + 1)) ++wrong_;
    last = value;
  }
  void run(uint64_t calls) {
    Random random(number_);
    std::vector<ports::CallId> recent;
    for (uint64_t i = 0; i < calls; ++i) {
      const Sent sent{random.below(4), random.chance(0.3)};
      auto step = request(number_ * 10 + sent.sequence + 1, sent.start, random.chance(0.2));
      step->outputs = {{.name = "t"}};
      const ports::CallId id =
          engine_.start({.request = std::move(step), .home = &loop_}, *this).id;
      sent_.emplace(id.value(), sent);
      recent.push_back(id);
      if (random.chance(0.1)) {
        engine_.abort(recent[random.below(recent.size())], EndReason::kClientGone,
                      random.chance(0.5) ? AbortScope::kAlsoRunning : AbortScope::kOnlyQueued);
      }
      if (recent.size() > 16) recent.clear();
      loop_.run_until([&] { return i + 1 - ended_ < 20; });
      loop_.run_ready();
    }
    loop_.run_until([&] { return ended_ == calls; });
  }
  [[nodiscard]] uint64_t wrong() const { return wrong_; }
  [[nodiscard]] uint64_t succeeded() const { return ended_ - failed_; }

 private:
  struct Sent {
    uint64_t sequence = 0;
    bool start = false;
  };
  SequenceEngine& engine_;
  const uint64_t number_;
  ports::testing::LoopExecutor loop_;
  std::map<uint64_t, Sent> sent_;
  std::array<int32_t, 4> counted_{};
  uint64_t ended_ = 0;
  uint64_t failed_ = 0;
  uint64_t wrong_ = 0;
};

TEST(SequenceEngineStress, CountsOnWhateverTheThreadsDo) {
  ports::testing::SteadyClock clock;
  for (const int64_t run_us : {5, 300}) {  // on the caller's thread, and on the instances'
    service::DecisionRing ring;
    service::DispatcherOptions options;
    options.config = config_of(true);
    options.config.instance_count = 2;
    options.curve = LatencyCurve({{1, Duration::us(run_us), 9}, {4, Duration::us(run_us * 2), 9}});
    std::vector<std::unique_ptr<ports::RuntimeInstance>> instances;
    for (uint64_t i = 0; i < 2; ++i) instances.push_back(std::make_unique<Adder>(i));
    InstanceEngine below(std::make_unique<service::ModelDispatcher>(std::move(options), ring),
                         std::move(instances),
                         std::make_shared<CpuPermits>(std::make_unique<service::LedgerPermits>(2)),
                         clock, InstanceEngineOptions{.name = "m", .cpus = {}});
    SequenceEngine engine(keeper_of(true), below, clock);
    std::array<std::unique_ptr<Client>, 3> clients;
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < clients.size(); ++i) {
      clients[i] = std::make_unique<Client>(engine, i + 1);
      threads.emplace_back([&, i] { clients[i]->run(2000); });
    }
    std::atomic<bool> done = false;
    std::thread idle([&] {  // beginnings wait for the ends of sequences that nobody goes on with
      while (!done) {
        static_cast<void>(engine.end_idle());
        std::this_thread::yield();
      }
    });
    for (std::thread& thread : threads) thread.join();
    done = true;
    idle.join();
    for (const auto& client : clients) {
      EXPECT_EQ(client->wrong(), 0U);
      EXPECT_GT(client->succeeded(), 0U);
    }
    EXPECT_EQ(engine.stats().queued_calls, 0U);
    engine.drain(clock.now());
    below.stop(clock.now());
  }
}

}  // namespace
}  // namespace baton::adapters
