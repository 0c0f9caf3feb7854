#include "adapters/control/control_loop.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "ports/testing/manual_clock.h"
#include "ports/testing/steady_clock.h"

namespace baton::adapters {
namespace {

TEST(ControlLoop, OrdersByTimeThenTimersBeforeTasksThenAsTheyCame) {
  ports::testing::ManualClock clock;
  ControlLoop loop(clock);
  const Instant now = clock.now();
  std::string order;
  loop.post([&] { order += 'c'; });
  loop.post([&] { order += 'd'; });
  loop.arm(now, [&] { order += 'b'; });
  loop.arm(now - Duration::ns(1), [&] { order += 'a'; });
  loop.arm(now + Duration::ns(1), [&] { order += 'x'; });
  loop.post([&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(order, "abcd");
}

TEST(ControlLoop, ATaskNeverRunsWithinThePostThatBringsIt) {
  ports::testing::ManualClock clock;
  ControlLoop loop(clock);
  std::string order;
  loop.post([&] {
    loop.post([&] {
      order += 'b';
      loop.stop();
    });
    order += 'a';
  });
  loop.run();
  EXPECT_EQ(order, "ab");
}

TEST(ControlLoop, ACancelledTimerDoesNotFire) {
  ports::testing::ManualClock clock;
  ControlLoop loop(clock);
  const ports::TimerId id = loop.arm(clock.now(), [] { FAIL(); });
  loop.cancel(id);
  loop.post([&] { loop.stop(); });
  loop.run();
}

TEST(ControlLoop, WaitsForATimerAndWakesForAPostOfAnotherThread) {
  const ports::testing::SteadyClock clock;
  ControlLoop loop(clock);
  const Instant due = clock.now() + Duration::ms(20);
  Instant fired;
  loop.arm(due + Duration::s(3600), [] { FAIL(); });
  loop.arm(due, [&] { fired = clock.now(); });
  std::thread owner([&] { loop.run(); });
  std::thread poster(
      [&] { loop.post([&] { loop.arm(due + Duration::ms(20), [&] { loop.stop(); }); }); });
  poster.join();
  owner.join();
  EXPECT_GE(fired, due);
}

}  // namespace
}  // namespace baton::adapters
