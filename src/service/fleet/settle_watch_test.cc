#include "service/fleet/settle_watch.h"

#include <gtest/gtest.h>

namespace baton::service {
namespace {

class SettleWatchTest : public testing::Test {
 protected:
  using Names = std::vector<std::string>;
  struct Seen {
    Names changed, removed;
    bool unsettled = false;
    bool operator==(const Seen&) const = default;
  };
  // A scan so many seconds after the first one.
  Seen look(int64_t at_s, const std::map<std::string, uint64_t>& folders,
            Duration unchanged = Duration()) {
    std::vector<ports::FoundModel> found;
    for (const auto& [name, stamp] : folders) {
      ports::FoundModel& model = found.emplace_back();
      model.name = name;
      model.stamp = stamp;
      model.unchanged = unchanged;
    }
    const auto turn = watch_.look(std::move(found), Instant::from_ns(1) + Duration::s(100 + at_s));
    Seen seen{{}, turn.removed, turn.unsettled};
    for (const auto& model : turn.changed) seen.changed.push_back(model.name);
    return seen;
  }
  SettleWatch watch_{Duration::s(2)};
};

TEST_F(SettleWatchTest, AFolderThatRestedBeforeTheStartIsReadAtOnce) {
  EXPECT_EQ(look(0, {{"m", 1}}, Duration::s(60)), (Seen{{"m"}, {}, false}));
  EXPECT_EQ(look(15, {{"m", 1}}), (Seen{{}, {}, false}));
}

TEST_F(SettleWatchTest, AFolderThatChangesIsLeftAloneUntilItRests) {  // server#6534
  EXPECT_EQ(look(0, {{"m", 1}}), (Seen{{}, {}, true}));
  EXPECT_EQ(look(1, {{"m", 2}}), (Seen{{}, {}, true}));
  EXPECT_EQ(look(2, {{"m", 3}}), (Seen{{}, {}, true}));
  EXPECT_EQ(look(3, {{"m", 3}}), (Seen{{}, {}, true}));
  EXPECT_EQ(look(4, {{"m", 3}}), (Seen{{"m"}, {}, false}));
  EXPECT_EQ(look(5, {{"m", 3}}), (Seen{{}, {}, false}));
}

TEST_F(SettleWatchTest, AChangeThatIsTakenBackIsNone) {
  EXPECT_EQ(look(0, {{"m", 1}}, Duration::s(60)), (Seen{{"m"}, {}, false}));
  EXPECT_EQ(look(1, {{"m", 2}}), (Seen{{}, {}, true}));
  EXPECT_EQ(look(2, {{"m", 1}}), (Seen{{}, {}, false}));
  EXPECT_EQ(look(9, {{"m", 1}}), (Seen{{}, {}, false}));
}

TEST_F(SettleWatchTest, AFolderIsGoneOnceItStaysAway) {
  EXPECT_EQ(look(0, {{"m", 1}, {"n", 1}}, Duration::s(60)), (Seen{{"m", "n"}, {}, false}));
  EXPECT_EQ(look(1, {{"n", 1}}), (Seen{{}, {}, true}));
  EXPECT_EQ(look(2, {{"m", 1}, {"n", 1}}), (Seen{{}, {}, false}));  // it was being replaced
  EXPECT_EQ(look(3, {{"n", 1}}), (Seen{{}, {}, true}));
  EXPECT_EQ(look(5, {{"n", 1}}), (Seen{{}, {"m"}, false}));
  EXPECT_EQ(look(6, {{"n", 1}}), (Seen{{}, {}, false}));
  EXPECT_EQ(look(7, {{"m", 1}, {"n", 1}}), (Seen{{}, {}, true}));
  EXPECT_EQ(look(9, {{"m", 1}, {"n", 1}}), (Seen{{"m"}, {}, false}));
}

TEST_F(SettleWatchTest, WhatComesAndGoesBeforeItRestsIsNeverTold) {
  EXPECT_EQ(look(0, {{"m", 1}}), (Seen{{}, {}, true}));
  EXPECT_EQ(look(1, {}), (Seen{{}, {}, true}));
  EXPECT_EQ(look(3, {}), (Seen{{}, {}, false}));
  EXPECT_EQ(look(5, {}), (Seen{{}, {}, false}));
}

}  // namespace
}  // namespace baton::service
