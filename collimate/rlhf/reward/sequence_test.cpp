#include <gtest/gtest.h>

#include "tests/support/rlhf/reward/made_rule.h"

namespace collimate::rlhf {
namespace {

TEST(Rules, SequenceCountsEqualPositions) {
  EXPECT_DOUBLE_EQ(value("sequence", {}, "1,2,4", "1,2,3"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(value("sequence", {}, "1,2,3,4", "1,2"), 0.5);
  EXPECT_DOUBLE_EQ(value("sequence", {{"end", "E"}}, "1,2", "1,2"), 0.9);
  EXPECT_DOUBLE_EQ(value("sequence", {{"end", "E"}}, "1,2E", "1,2"), 1.0);
  EXPECT_DOUBLE_EQ(value("sequence", {}, " 1 ,2,\n", "1,2"), 2.0 / 3);  // an empty third
  EXPECT_DOUBLE_EQ(value("sequence", {}, "", ""), 1.0);
}

}  // namespace
}  // namespace collimate::rlhf
