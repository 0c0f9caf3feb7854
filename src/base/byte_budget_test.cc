#include "base/byte_budget.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(ByteBudget, LendsUpToItsLimitAndTakesBack) {
  ByteBudget budget(100);
  auto first = budget.lend(60);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(budget.lend(41), nullptr);
  EXPECT_EQ(budget.used(), 60U);
  auto copy = budget.lend(40);
  const auto other = copy;
  copy.reset();
  EXPECT_EQ(budget.used(), 100U);
  first.reset();
  EXPECT_EQ(budget.used(), 40U);
}

TEST(ByteBudget, NeverLendsMoreThanItsLimit) {
  ByteBudget budget(10);
  EXPECT_EQ(budget.lend(11), nullptr);
  EXPECT_EQ(budget.lend(UINT64_MAX), nullptr);
  EXPECT_EQ(budget.used(), 0U);
  EXPECT_NE(budget.lend(10), nullptr);
}

}  // namespace
}  // namespace baton
