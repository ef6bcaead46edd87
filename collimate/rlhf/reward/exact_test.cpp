#include <gtest/gtest.h>

#include "tests/support/rlhf/reward/made_rule.h"

namespace collimate::rlhf {
namespace {

TEST(Rules, ExactComparesAColumn) {
  EXPECT_EQ(value("exact", {}, " 12 ", "12"), 1.0);
  EXPECT_EQ(value("exact", {{"strip", false}}, " 12 ", "12"), 0.0);
}

}  // namespace
}  // namespace collimate::rlhf
