// Permits, placement and timed waits: what threads do, with a dispatcher that is scripted.

#include <gtest/gtest.h>
#include <sched.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "adapters/instances/cpu_permits.h"
#include "adapters/instances/instance_engine.h"
#include "ports/testing/fake_engine.h"
#include "ports/testing/fake_runtime.h"
#include "ports/testing/steady_clock.h"
#include "service/batching/permits.h"

namespace baton::adapters {
namespace {

std::shared_ptr<CpuPermits> make_permits(uint32_t count) {
  return std::make_shared<CpuPermits>(std::make_unique<service::LedgerPermits>(count));
}

// Has nothing to run; counts who asks and says when to ask again.
class EmptyDispatcher final : public ports::Dispatcher {
 public:
  explicit EmptyDispatcher(Duration again) : again_(again) {}

  ports::Submitted submit(ports::DispatchedCall&, Instant) override { return {}; }
  void will_ask(ports::InstanceIndex) override {}
  ports::NextBatch next(ports::InstanceIndex, Instant now, ports::Batch&,
                        std::vector<ports::EndedCall>&) override {
    const std::lock_guard lock(mutex_);
    asked_at_.push_back(now);
    asked_.notify_all();
    return {.ask_again = now + again_};
  }
  void finish(ports::InstanceIndex, ports::Batch&, Result<ports::BatchResult, ports::RunFailure>&,
              Instant, std::vector<ports::EndedCall>&) override {}
  Aborted abort(ports::CallId, EndReason, ports::AbortScope, Instant,
                std::vector<ports::EndedCall>&) override {
    return {};
  }
  ports::InstanceIndex add_instance(Instant) override { return 1; }
  ports::NextBatch remove_instance(ports::InstanceIndex, Instant) override { return {}; }
  void stop_accepting(EndReason) override {}
  void close(EndReason, Instant, std::vector<ports::EndedCall>&) override {}
  [[nodiscard]] size_t queued_calls() const override { return 0; }
  [[nodiscard]] size_t running_calls() const override { return 0; }
  [[nodiscard]] ports::EngineStats stats() const override { return {}; }
  [[nodiscard]] std::vector<BatchSizeTotals> batch_totals() const override { return {}; }
  [[nodiscard]] LatencyCurve curve() const override { return {}; }
  [[nodiscard]] Instant most_urgent() const override { return Instant::never(); }
  [[nodiscard]] const std::string& refusal_text(DecisionReason) const override { return text_; }

  std::vector<Instant> wait_for_asks(size_t count) {
    std::unique_lock lock(mutex_);
    asked_.wait(lock, [&] { return asked_at_.size() >= count; });
    return asked_at_;
  }

 private:
  Duration again_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::vector<Instant> asked_at_;
  std::string text_;
};

std::vector<std::unique_ptr<ports::RuntimeInstance>> one_instance() {
  std::vector<std::unique_ptr<ports::RuntimeInstance>> instances;
  instances.push_back(std::make_unique<ports::testing::FakeRuntimeInstance>());
  return instances;
}

TEST(InstanceThread, AsksAgainWhenItWasToldTo) {
  ports::testing::SteadyClock clock;
  auto dispatcher = std::make_unique<EmptyDispatcher>(Duration::ms(2));
  EmptyDispatcher* asked = dispatcher.get();
  InstanceEngine engine(std::move(dispatcher), one_instance(), make_permits(1), clock,
                        {.name = "timed", .cpus = {}});
  const std::vector<Instant> asks = asked->wait_for_asks(4);
  for (size_t i = 1; i < asks.size(); ++i) EXPECT_GE(asks[i] - asks[i - 1], Duration::ms(2));
}

TEST(InstanceThread, IsPinnedAndNamedAndReportsWhatTheKernelSays) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int cpu = 0;
  while (!CPU_ISSET(static_cast<size_t>(cpu), &allowed)) ++cpu;
  ports::testing::SteadyClock clock;
  InstanceEngine engine(std::make_unique<EmptyDispatcher>(Duration::s(1)), one_instance(),
                        make_permits(1), clock, {.name = "a-rather-long-name", .cpus = {cpu}});
  const std::vector<Placement> placements = engine.placements();
  ASSERT_EQ(placements.size(), 1U);
  EXPECT_EQ(placements[0].cpus, std::vector<int>{cpu});
  EXPECT_TRUE(placements[0].pinned_as_asked);
  EXPECT_EQ(placements[0].thread, "a-rather-long-n");
}

TEST(InstanceThread, SaysWhenItCouldNotBePinned) {
  ports::testing::SteadyClock clock;
  InstanceEngine engine(std::make_unique<EmptyDispatcher>(Duration::s(1)), one_instance(),
                        make_permits(1), clock, {.name = "m", .cpus = {1000}});
  EXPECT_FALSE(engine.placements()[0].pinned_as_asked);
}

TEST(CpuPermits, GoToTheEarliestDeadline) {
  auto permits = make_permits(1);
  permits->acquire(Instant());
  std::mutex mutex;
  std::vector<int> order;
  const auto wait_for_permit = [&](int who, Instant deadline) {
    permits->acquire(deadline);
    {
      const std::lock_guard lock(mutex);
      order.push_back(who);
    }
    permits->release();
  };
  std::thread patient(wait_for_permit, 2, Instant::from_ns(20));
  while (!permits->contended(Instant::from_ns(20))) std::this_thread::yield();
  std::thread urgent(wait_for_permit, 1, Instant::from_ns(10));
  while (!permits->contended(Instant::from_ns(10))) std::this_thread::yield();
  EXPECT_FALSE(permits->try_acquire());
  permits->release();
  patient.join();
  urgent.join();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_TRUE(permits->try_acquire());
}

}  // namespace
}  // namespace baton::adapters
