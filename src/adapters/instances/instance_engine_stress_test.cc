// Many threads start and abort against a runtime that returns at once: for the thread sanitizer.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "adapters/instances/instance_engine.h"
#include "base/random.h"
#include "ports/testing/loop_executor.h"
#include "ports/testing/steady_clock.h"
#include "service/batching/model_dispatcher.h"
#include "service/batching/permits.h"
#include "service/telemetry/decision_ring.h"

namespace baton::adapters {
namespace {

// Takes a little while, fails now and then, and ends early when told.
class BusyInstance final : public ports::RuntimeInstance {
 public:
  explicit BusyInstance(uint64_t seed) : random_(seed) {}
  Result<ports::BatchResult, ports::RunFailure> run(
      std::span<const InferRequest* const> members) override {
    terminated_ = false;
    const uint64_t turns = random_.below(3000);
    for (uint64_t i = 0; i < turns; ++i) {
      if (terminated_) return fail(ports::RunFailure{.terminated = true, .message = "terminated"});
    }
    if (random_.chance(0.01)) return fail(ports::RunFailure{.message = "bad luck"});
    ports::BatchResult result;
    result.results.resize(members.size());
    return result;
  }
  void terminate() override { terminated_ = true; }

 private:
  Random random_;
  std::atomic<bool> terminated_ = false;
};

// One worker's calls, all on its own thread. Counts how often each ended.
class Client final : public ports::EngineEvents {
 public:
  void on_end(ports::CallId, ports::EngineEnd end) override {
    ++ended_;
    by_reason_[static_cast<size_t>(end.reason)]++;
  }
  void run(InstanceEngine& engine, uint64_t seed, uint64_t calls) {
    Random random(seed);
    std::vector<ports::CallId> recent;
    for (uint64_t i = 0; i < calls; ++i) {
      auto request = std::make_shared<InferRequest>();
      request->items = 1 + random.below(3);
      request->batch_key = random.below(3);
      request->inputs.resize(request->batch_key + 1);
      request->context.priority = static_cast<uint32_t>(random.below(3));
      recent.push_back(engine.start({.request = std::move(request), .home = &loop_}, *this).id);
      if (random.chance(0.2)) {
        const auto scope =
            random.chance(0.5) ? ports::AbortScope::kAlsoRunning : ports::AbortScope::kOnlyQueued;
        engine.abort(recent[random.below(recent.size())], EndReason::kClientGone, scope);
      }
      if (recent.size() > 64) recent.clear();
      // Bounded in flight, so that most calls are served and not refused.
      loop_.run_until([&] { return i + 1 - ended_ < 100; });
      loop_.run_ready();
    }
    loop_.run_until([&] { return ended_ == calls; });
  }
  [[nodiscard]] uint64_t ended() const { return ended_; }
  [[nodiscard]] uint64_t ended(EndReason reason) const {
    return by_reason_[static_cast<size_t>(reason)];
  }

 private:
  ports::testing::LoopExecutor loop_;
  uint64_t ended_ = 0;
  std::array<uint64_t, kEndReasonCount> by_reason_{};
};

std::unique_ptr<InstanceEngine> make_engine(const ports::Clock& clock, ports::DecisionSink& ring,
                                            std::shared_ptr<CpuPermits> permits, Duration run) {
  service::DispatcherOptions options;
  options.config.name = "stress";
  options.config.max_batch_size = 8;
  options.config.instance_count = 3;
  options.config.batching.enabled = true;
  options.config.batching.max_delay = Duration::us(300);
  options.config.batching.priority_levels = 2;
  options.limits.max_items = 500;
  options.curve = LatencyCurve({{.batch_size = 1, .duration = run, .samples = 9},
                                {.batch_size = 8, .duration = run * 2, .samples = 9}});
  std::vector<std::unique_ptr<ports::RuntimeInstance>> instances;
  for (uint64_t i = 0; i < 3; ++i) instances.push_back(std::make_unique<BusyInstance>(i));
  return std::make_unique<InstanceEngine>(
      std::make_unique<service::ModelDispatcher>(std::move(options), ring), std::move(instances),
      std::move(permits), clock, InstanceEngineOptions{.name = "stress", .cpus = {}});
}

TEST(InstanceEngineStress, EveryCallEndsOnceWhateverTheThreadsDo) {
  constexpr uint64_t kClients = 4;
  constexpr uint64_t kCalls = 3000;
  ports::testing::SteadyClock clock;
  service::DecisionRing ring;
  auto permits = std::make_shared<CpuPermits>(std::make_unique<service::LedgerPermits>(2));
  // Two models share the permits; the short one is run inline when it is idle.
  auto brief = make_engine(clock, ring, permits, Duration::us(5));
  service::DecisionRing other_ring;
  auto lengthy = make_engine(clock, other_ring, permits, Duration::us(200));
  std::array<Client, kClients> clients;
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kClients; ++i) {
    threads.emplace_back([&, i] { clients[i].run(i % 2 == 0 ? *brief : *lengthy, i + 1, kCalls); });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t answered = 0;
  for (const Client& client : clients) {
    EXPECT_EQ(client.ended(), kCalls);
    answered += client.ended(EndReason::kOk);
  }
  EXPECT_GT(answered, 0);  // how many is up to the scheduler of the machine
  for (InstanceEngine* engine : {brief.get(), lengthy.get()}) {
    EXPECT_EQ(engine->queued_calls(), 0U);
    EXPECT_EQ(engine->running_calls(), 0U);
  }
}

TEST(InstanceEngineStress, StoppingUnderLoadEndsEveryCall) {
  ports::testing::SteadyClock clock;
  for (uint64_t round = 0; round < 20; ++round) {
    service::DecisionRing ring;
    auto permits = std::make_shared<CpuPermits>(std::make_unique<service::LedgerPermits>(1));
    auto engine = make_engine(clock, ring, permits, Duration::us(round % 2 == 0 ? 5 : 200));
    std::array<Client, 2> clients;
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < clients.size(); ++i) {
      threads.emplace_back([&, i] { clients[i].run(*engine, round * 10 + i, 300); });
    }
    engine->stop(clock.now() + Duration::us(static_cast<int64_t>(round) * 100));
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(engine->queued_calls() + engine->running_calls(), 0U);
  }
}

}  // namespace
}  // namespace baton::adapters
