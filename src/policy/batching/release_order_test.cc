#include "policy/batching/release_order.h"

#include <gtest/gtest.h>

namespace baton::policy {
namespace {

TEST(ReleaseOrder, HoldsAnswersBackForEarlierCalls) {
  ReleaseOrder order;
  for (uint64_t sequence : {3U, 5U, 8U}) order.enter(sequence, static_cast<Slot>(sequence * 10));
  order.answered(5);
  EXPECT_EQ(order.take_next(), std::nullopt);
  order.answered(3);
  EXPECT_EQ(order.take_next(), Slot{30});
  EXPECT_EQ(order.take_next(), Slot{50});
  EXPECT_EQ(order.take_next(), std::nullopt);
  EXPECT_EQ(order.size(), 1U);
}

TEST(ReleaseOrder, WhoLeavesWithoutAnAnswerHoldsNobodyBack) {
  ReleaseOrder order;
  for (uint64_t sequence : {1U, 2U, 3U}) order.enter(sequence, static_cast<Slot>(sequence));
  order.answered(3);
  order.leave(2);
  order.leave(1);
  EXPECT_EQ(order.take_next(), Slot{3});
  EXPECT_EQ(order.size(), 0U);
}

TEST(ReleaseOrder, AnAnsweredCallMayStillLeave) {
  ReleaseOrder order;
  order.enter(1, 1);
  order.enter(2, 2);
  order.answered(2);
  order.leave(2);
  order.answered(1);
  EXPECT_EQ(order.take_next(), Slot{1});
  EXPECT_EQ(order.take_next(), std::nullopt);
}

}  // namespace
}  // namespace baton::policy
