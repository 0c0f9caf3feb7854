#include "adapters/jobs/job_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <vector>

#include "ports/testing/fake_runtime.h"

namespace baton::adapters::jobs {
namespace {

using ports::Cancellation;

TEST(JobPool, RunsJobsInTheirOrderAtLowPriority) {
  JobPool pool({.threads = 1, .nice = 10});
  std::promise<void> done;
  std::vector<int> order;
  int nice = 0;
  for (int i = 0; i < 3; ++i) pool.run([&, i](Cancellation&) { order.push_back(i); });
  pool.run([&](Cancellation&) {
    nice = getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)));
    done.set_value();
  });
  done.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
  EXPECT_GE(nice, 10);
}

TEST(JobPool, RunsAsManySideBySideAsItHasThreads) {
  std::promise<void> first;
  std::promise<void> second;
  std::promise<void> met;
  JobPool pool({.threads = 2});
  pool.run([&](Cancellation&) {
    first.set_value();
    second.get_future().wait();
    met.set_value();
  });
  pool.run([&](Cancellation&) {
    first.get_future().wait();
    second.set_value();
  });
  met.get_future().wait();  // a pool that ends drops what has not begun
}

TEST(JobPool, DropsWhatIsQueuedWhenItIsCancelled) {
  std::atomic<int> ran = 0;
  std::promise<void> begun;
  std::promise<void> release;
  {
    JobPool pool({.threads = 1});
    pool.run([&](Cancellation& cancellation) {
      begun.set_value();
      release.get_future().wait();
      EXPECT_TRUE(cancellation.requested());
      ++ran;
    });
    for (int i = 0; i < 5; ++i) pool.run([&](Cancellation&) { ++ran; });
    begun.get_future().wait();
    pool.cancel();
    pool.run([&](Cancellation&) { ++ran; });
    release.set_value();
  }
  EXPECT_EQ(ran, 1);
}

TEST(JobPool, InterruptsAStepThatRunsAndStartsNoOther) {
  ports::testing::FakeRuntimeInstance instance;
  instance.hold();
  std::atomic<bool> terminated = false;
  std::atomic<bool> began_another = false;
  {
    JobPool pool({.threads = 1});
    pool.run([&](Cancellation& cancellation) {
      const InferRequest request;
      const std::vector<const InferRequest*> members = {&request};
      const auto interrupt = [&] { instance.terminate(); };
      cancellation.run(
          [&] {
            const auto outcome = instance.run(members);
            terminated = !outcome.has_value() && outcome.error().terminated;
          },
          interrupt);
      cancellation.run([&] { began_another = true; }, interrupt);
    });
    instance.wait_for_runs(1);
  }
  EXPECT_TRUE(terminated);
  EXPECT_FALSE(began_another);
}

TEST(JobPool, InterruptsAgainWhatMissedTheFirstTime) {
  std::atomic<int> interrupts = 0;
  std::promise<void> begun;
  {
    JobPool pool({.threads = 1});
    pool.run([&](Cancellation& cancellation) {
      std::promise<void> third;
      cancellation.run(
          [&] {
            begun.set_value();
            third.get_future().wait();
          },
          [&] {
            if (++interrupts == 3) third.set_value();
          });
    });
    begun.get_future().wait();
  }
  EXPECT_GE(interrupts, 3);
}

}  // namespace
}  // namespace baton::adapters::jobs
