#include "base/event_queue.h"

#include <gtest/gtest.h>

#include <string>

namespace baton {
namespace {

TEST(EventQueue, OrdersByTimeThenPriorityThenSequence) {
  EventQueue queue;
  std::string order;
  queue.schedule(Instant::from_ns(20), [&] { order += 'd'; });
  queue.schedule(Instant::from_ns(10), [&] { order += 'b'; }, 1);
  queue.schedule(Instant::from_ns(10), [&] { order += 'c'; }, 1);
  queue.schedule(Instant::from_ns(10), [&] { order += 'a'; }, 0);
  while (auto due = queue.pop_due(Instant::from_ns(100))) due->action();
  EXPECT_EQ(order, "abcd");
}

TEST(EventQueue, KeepsWhatIsNotDue) {
  EventQueue queue;
  queue.schedule(Instant::from_ns(10), [] {});
  EXPECT_FALSE(queue.pop_due(Instant::from_ns(9)).has_value());
  EXPECT_EQ(queue.next_time(), Instant::from_ns(10));
}

TEST(EventQueue, ACancelledEventNeverRunsAndCancelsOnce) {
  EventQueue queue;
  const EventId id = queue.schedule(Instant::from_ns(1), [] { FAIL(); });
  EXPECT_TRUE(queue.cancel(id));
  EXPECT_FALSE(queue.cancel(id));
  EXPECT_FALSE(queue.pop_due(Instant::never()).has_value());
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace baton
