#include "base/quality.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(QualityThousandths, ReadsWeightsAndNothingElse) {
  EXPECT_EQ(quality_thousandths("1"), 1000);
  EXPECT_EQ(quality_thousandths("0.5"), 500);
  EXPECT_EQ(quality_thousandths("0.025"), 25);
  EXPECT_EQ(quality_thousandths("1.000"), 1000);
  for (const char* text : {"", "0", "2", "1.1", "0.1234", "0,5", "-1", "0.x", " 1", ".5"}) {
    EXPECT_EQ(quality_thousandths(text), 0) << text;
  }
}

}  // namespace
}  // namespace baton
