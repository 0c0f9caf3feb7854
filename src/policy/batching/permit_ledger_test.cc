#include "policy/batching/permit_ledger.h"

#include <gtest/gtest.h>

namespace baton::policy {
namespace {

Instant at(int64_t ns) {
  return Instant::from_ns(ns);
}

TEST(PermitLedger, GrantsAtMostWhatItHas) {
  PermitLedger ledger(2);
  EXPECT_TRUE(ledger.request(1, at(5)));
  EXPECT_TRUE(ledger.try_request());
  EXPECT_FALSE(ledger.try_request());
  EXPECT_FALSE(ledger.request(2, at(1)));
}

TEST(PermitLedger, ServesByDeadlineThenByTicket) {
  PermitLedger ledger(1);
  EXPECT_TRUE(ledger.request(1, at(1)));
  EXPECT_FALSE(ledger.request(2, at(30)));
  EXPECT_FALSE(ledger.request(4, at(10)));
  EXPECT_FALSE(ledger.request(3, at(10)));
  EXPECT_TRUE(ledger.contended(at(10)));
  EXPECT_FALSE(ledger.contended(at(9)));
  EXPECT_EQ(ledger.give_back(), 3U);
  EXPECT_EQ(ledger.give_back(), 4U);
  EXPECT_EQ(ledger.give_back(), 2U);
  EXPECT_EQ(ledger.give_back(), std::nullopt);
  EXPECT_TRUE(ledger.try_request());
}

}  // namespace
}  // namespace baton::policy
