#include "domain/forwarded_headers.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

HeaderPatterns patterns(const std::vector<std::string>& texts) {
  return HeaderPatterns::parse(texts).value();
}

TEST(HeaderPatterns, MatchNamesAndBeginningsInAnyCase) {
  const auto some = patterns({"X-User", "x-b3-*"});
  EXPECT_TRUE(some.matches("x-user"));
  EXPECT_FALSE(some.matches("x-user-id"));
  EXPECT_TRUE(some.matches("x-b3-traceid"));
  EXPECT_TRUE(some.matches("x-b3-"));
  EXPECT_FALSE(some.matches("x-b3"));
  EXPECT_TRUE(patterns({"*"}).matches("anything"));
  EXPECT_FALSE(patterns({}).matches("x"));
}

TEST(HeaderPatterns, NeverMatchCredentials) {
  const auto all = patterns({"*", "auth*", "c*"});
  for (const char* name :
       {"authorization", "proxy-authorization", "x-api-key", "cookie", "set-cookie"}) {
    EXPECT_FALSE(all.matches(name)) << name;
    EXPECT_FALSE(HeaderPatterns::parse({name}).has_value()) << name;
  }
  EXPECT_TRUE(HeaderPatterns::parse({"Cookie"}).error().contains("credentials"));
}

TEST(HeaderPatterns, WhatIsNoPatternIsRefused) {
  for (const char* wrong : {"", "a b", "x-*-y", "**", "^x.*(", "x:y", "\xc3\xa4"}) {
    EXPECT_FALSE(HeaderPatterns::parse({wrong}).has_value()) << wrong;
  }
  EXPECT_FALSE(HeaderPatterns::parse({std::string(65, 'a')}).has_value());
  EXPECT_FALSE(HeaderPatterns::parse(std::vector<std::string>(33, "a")).has_value());
}

TEST(HeaderCollector, IsNullWhenNothingMatches) {
  const auto some = patterns({"x-user"});
  HeaderCollector collector(some);
  collector.add("host", "a");
  EXPECT_EQ(collector.take(), nullptr);
}

TEST(HeaderCollector, JoinsWhatStandsTwice) {
  const auto some = patterns({"x-*"});
  HeaderCollector collector(some);
  collector.add("x-b", "1");
  collector.add("x-a", "2");
  collector.add("x-b", "3");
  const auto found = collector.take();
  ASSERT_EQ(found->headers.size(), 2U);
  EXPECT_EQ(found->headers[0].name, "x-b");
  EXPECT_EQ(found->headers[0].value, "1, 3");
  EXPECT_FALSE(found->cut);
}

TEST(HeaderCollector, CutsWhatIsTooMuchAndSaysSo) {
  const auto some = patterns({"x-*"});
  HeaderCollector exact(some);
  exact.add("x-a", std::string(256, 'a'));
  for (int i = 1; i < 16; ++i) exact.add("x-" + std::to_string(i), "");
  EXPECT_FALSE(exact.take()->cut);
  HeaderCollector longer(some);
  longer.add("x-a", std::string(257, 'a'));
  auto found = longer.take();
  EXPECT_TRUE(found->cut);
  EXPECT_EQ(found->headers[0].value.size(), 256U);
  HeaderCollector more(some);
  for (int i = 0; i < 17; ++i) more.add("x-" + std::to_string(i), "1");
  found = more.take();
  EXPECT_TRUE(found->cut);
  EXPECT_EQ(found->headers.size(), 16U);
  HeaderCollector named(some);
  named.add("x-" + std::string(63, 'n'), "1");
  EXPECT_TRUE(named.take()->cut);
}

}  // namespace
}  // namespace baton
