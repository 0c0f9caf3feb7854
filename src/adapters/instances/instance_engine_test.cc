#include "adapters/instances/instance_engine.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "ports/testing/fake_runtime.h"
#include "ports/testing/loop_executor.h"
#include "ports/testing/manual_clock.h"
#include "ports/testing/recording_events.h"
#include "service/batching/model_dispatcher.h"
#include "service/batching/permits.h"
#include "service/telemetry/decision_ring.h"

namespace baton::adapters {
namespace {

using ports::testing::FakeRuntimeInstance;

struct Bench {
  explicit Bench(uint32_t instances = 1, LatencyCurve curve = {}, uint32_t cpu_permits = 2) {
    service::DispatcherOptions options;
    options.config.name = "m";
    options.config.max_batch_size = 8;
    options.config.instance_count = instances;
    options.config.batching.enabled = true;
    options.curve = std::move(curve);
    std::vector<std::unique_ptr<ports::RuntimeInstance>> runtimes;
    for (uint32_t i = 0; i < instances; ++i) {
      auto runtime = std::make_unique<FakeRuntimeInstance>();
      fakes.push_back(runtime.get());
      runtimes.push_back(std::move(runtime));
    }
    auto permits =
        std::make_shared<CpuPermits>(std::make_unique<service::LedgerPermits>(cpu_permits));
    engine = std::make_unique<InstanceEngine>(
        std::make_unique<service::ModelDispatcher>(std::move(options), ring), std::move(runtimes),
        std::move(permits), clock, InstanceEngineOptions{.name = "m", .cpus = {}});
  }
  ports::CallId start(uint64_t items = 1) {
    auto request = std::make_shared<InferRequest>();
    request->items = items;
    request->context.id = RequestId(++requests);
    return engine->start({.request = std::move(request), .home = &loop}, events).id;
  }
  void wait_for(size_t ends) {
    loop.run_until([&] { return events.count() >= ends; });
  }

  ports::testing::ManualClock clock;
  ports::testing::LoopExecutor loop;
  ports::testing::RecordingEvents events;
  service::DecisionRing ring;
  std::vector<FakeRuntimeInstance*> fakes;
  std::unique_ptr<InstanceEngine> engine;
  uint64_t requests = 0;
};

TEST(InstanceEngine, AnswersACallOnItsHome) {
  Bench bench;
  const ports::CallId id = bench.start();
  EXPECT_EQ(bench.events.count(), 0U) << "never within start()";
  bench.wait_for(1);
  EXPECT_EQ(bench.events.end_of(id).reason, EndReason::kOk);
}

TEST(InstanceEngine, ArrivalsDuringARunFormTheNextBatch) {  // U138
  Bench bench;
  bench.fakes[0]->hold();
  bench.start();
  bench.fakes[0]->wait_for_runs(1);
  for (int i = 0; i < 4; ++i) bench.start();
  bench.fakes[0]->release();
  bench.wait_for(5);
  EXPECT_EQ(bench.fakes[0]->batch_items(), (std::vector<uint64_t>{1, 4}));
}

TEST(InstanceEngine, TerminatesARunOnlyWhenItsLastMemberIsGone) {
  Bench bench;
  bench.fakes[0]->hold();
  bench.start();
  bench.fakes[0]->wait_for_runs(1);
  const ports::CallId a = bench.start();
  const ports::CallId b = bench.start();
  bench.fakes[0]->release_one();
  bench.wait_for(1);
  bench.fakes[0]->wait_for_runs(2);
  bench.engine->abort(a, EndReason::kClientGone, ports::AbortScope::kAlsoRunning);
  bench.wait_for(2);
  EXPECT_EQ(bench.fakes[0]->terminations(), 0U);
  bench.engine->abort(b, EndReason::kDeadlineRunning, ports::AbortScope::kAlsoRunning);
  bench.wait_for(3);
  EXPECT_EQ(bench.fakes[0]->terminations(), 1U);
  EXPECT_EQ(bench.events.end_of(b).reason, EndReason::kDeadlineRunning);
}

TEST(InstanceEngine, EndsWhatItCannotFinishWhenStopped) {
  Bench bench;
  bench.fakes[0]->hold();
  const ports::CallId running = bench.start();
  bench.fakes[0]->wait_for_runs(1);
  const ports::CallId queued = bench.start();
  bench.engine->stop(bench.clock.now());
  const ports::CallId refused = bench.start();
  bench.wait_for(3);
  for (ports::CallId id : {running, queued, refused}) {
    EXPECT_EQ(bench.events.end_of(id).reason, EndReason::kShuttingDown);
  }
}

TEST(InstanceEngine, RunsAShortCallOnTheCallersThread) {
  Bench bench(1, LatencyCurve({{.batch_size = 1, .duration = Duration::us(3), .samples = 9}}));
  // The instance is idle once it has asked and found nothing; until then a call goes to its thread.
  while (bench.ring.recorded() < 1000 && bench.fakes[0]->batch_items().size() < 100) {
    bench.start();
    bench.wait_for(bench.requests);
  }
  EXPECT_EQ(bench.events.count(), bench.requests);
}

// Runs until it and its partner have been terminated.
class Reluctant final : public ports::RuntimeInstance {
 public:
  struct Pair {
    std::mutex mutex;
    std::condition_variable changed;
    int running = 0;
    int terminated = 0;
  };
  explicit Reluctant(Pair& pair) : pair_(pair) {}
  Result<ports::BatchResult, ports::RunFailure> run(std::span<const InferRequest* const>) override {
    std::unique_lock lock(pair_.mutex);
    ++pair_.running;
    pair_.changed.notify_all();
    pair_.changed.wait(lock, [&] { return pair_.terminated == 2; });
    return fail(ports::RunFailure{.terminated = true, .message = "terminated"});
  }
  void terminate() override {
    const std::lock_guard lock(pair_.mutex);
    if (!std::exchange(terminated_, true)) ++pair_.terminated;
    pair_.changed.notify_all();
  }

 private:
  Pair& pair_;
  bool terminated_ = false;
};

TEST(StopTogether, EndsTheRunsOfAllEnginesSideBySide) {
  Bench bench;  // its clock, loop and ring
  Reluctant::Pair pair;
  const auto permits = std::make_shared<CpuPermits>(std::make_unique<service::LedgerPermits>(2));
  std::vector<std::unique_ptr<InstanceEngine>> engines;
  std::vector<InstanceEngine*> all;
  for (int i = 0; i < 2; ++i) {
    std::vector<std::unique_ptr<ports::RuntimeInstance>> runtimes;
    runtimes.push_back(std::make_unique<Reluctant>(pair));
    service::DispatcherOptions options;
    options.config.name = "m";
    engines.push_back(std::make_unique<InstanceEngine>(
        std::make_unique<service::ModelDispatcher>(std::move(options), bench.ring),
        std::move(runtimes), permits, bench.clock, InstanceEngineOptions{.name = "m", .cpus = {}}));
    all.push_back(engines.back().get());
    all.back()->start({.request = std::make_shared<InferRequest>(), .home = &bench.loop},
                      bench.events);
  }
  {
    std::unique_lock lock(pair.mutex);
    pair.changed.wait(lock, [&] { return pair.running == 2; });
  }
  stop_together(all, bench.clock.now());  // one after the other would never end
  EXPECT_EQ(pair.terminated, 2);
}

TEST(InstanceEngine, InstancesJoinAndLeaveWhileItServes) {
  Bench bench;
  std::vector<std::unique_ptr<ports::RuntimeInstance>> more;
  auto added = std::make_unique<FakeRuntimeInstance>();
  FakeRuntimeInstance& second = *added;
  more.push_back(std::move(added));
  bench.fakes[0]->hold();
  bench.start();
  bench.fakes[0]->wait_for_runs(1);
  bench.engine->add_instances(std::move(more));
  bench.start();  // the first one runs
  bench.wait_for(1);
  second.wait_for_runs(1);
  bench.fakes[0]->release();
  bench.wait_for(2);
  bench.engine->keep_instances(1);
  for (int i = 0; i < 4; ++i) {
    bench.start();
    bench.wait_for(3 + static_cast<size_t>(i));
  }
  EXPECT_EQ(bench.fakes[0]->batch_items().size(), 5U);
}

TEST(InstanceEngine, AnInstanceThatLeavesEndsItsRun) {
  Bench bench(2);
  for (FakeRuntimeInstance* fake : bench.fakes) fake->hold();
  bench.start(8);  // a whole batch each, so that both instances run
  bench.start(8);
  for (FakeRuntimeInstance* fake : bench.fakes) fake->wait_for_runs(1);
  bench.start();  // queued behind both
  std::thread leaving([&] { bench.engine->keep_instances(1); });
  EXPECT_EQ(bench.events.count(), 0U);
  for (FakeRuntimeInstance* fake : bench.fakes) fake->release();
  bench.wait_for(3);
  leaving.join();
  for (const ports::CallId id : bench.events.order()) {
    EXPECT_EQ(bench.events.end_of(id).reason, EndReason::kOk);
  }
}

TEST(InstanceEngine, NoCallIsLostWhileInstancesComeAndGo) {
  Bench bench(1, LatencyCurve(), 4);
  std::thread scaling([&] {
    for (int round = 0; round < 100; ++round) {
      std::vector<std::unique_ptr<ports::RuntimeInstance>> more;
      for (int i = 0; i < 3; ++i) more.push_back(std::make_unique<FakeRuntimeInstance>());
      bench.engine->add_instances(std::move(more));
      bench.engine->keep_instances(1);
    }
  });
  for (size_t i = 0; i < 2000; ++i) {
    bench.start();
    if (i % 8 == 7) bench.wait_for(i + 1);
  }
  scaling.join();
  bench.wait_for(2000);
}

}  // namespace
}  // namespace baton::adapters
