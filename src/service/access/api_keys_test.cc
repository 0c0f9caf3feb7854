#include "service/access/api_keys.h"

#include <gtest/gtest.h>

namespace baton::service {
namespace {

size_t line_of_error(std::string_view text) {
  const auto parsed = parse_api_keys(text);
  EXPECT_FALSE(parsed.has_value()) << text;
  return parsed.has_value() ? 0 : parsed.error().line;
}

TEST(ApiKeys, ReadsOneKeyALine) {
  const auto keys = parse_api_keys("k1 alice\r\n\n  k2\tbob  \nk3 alice");
  ASSERT_TRUE(keys.has_value());
  EXPECT_EQ(*keys, (ApiKeys{{"k1", "alice"}, {"k2", "bob"}, {"k3", "alice"}}));
}

TEST(ApiKeys, TheWordsOfACommentLetNobodyIn) {
  const auto keys = parse_api_keys("# our keys\n  #old gone\nsecret team-a\n");
  ASSERT_TRUE(keys.has_value());
  EXPECT_EQ(*keys, (ApiKeys{{"secret", "team-a"}}));
}

TEST(ApiKeys, ALineHasTwoWordsExactly) {
  EXPECT_EQ(line_of_error("k1 alice\nsecret team a\n"), 2U);
  EXPECT_EQ(line_of_error("alone\n"), 1U);
  EXPECT_EQ(line_of_error("k1 alice # on call\n"), 1U);
}

TEST(ApiKeys, AKeyThatStandsTwiceIsRefusedAndNotShown) {
  const auto keys = parse_api_keys("secret alice\n\nsecret bob\n");
  ASSERT_FALSE(keys.has_value());
  EXPECT_EQ(keys.error().line, 3U);
  EXPECT_EQ(keys.error().message.find("secret"), std::string::npos);
}

TEST(ApiKeys, ATextWithoutKeysIsAnError) {
  EXPECT_EQ(line_of_error(""), 0U);
  EXPECT_EQ(line_of_error("# none yet\n"), 0U);
}

}  // namespace
}  // namespace baton::service
