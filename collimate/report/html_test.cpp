#include "collimate/report/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collimate::report {
namespace {

TEST(Numbers, AreShort) {
  EXPECT_EQ(short_number(0.123456), "0.123");
  EXPECT_EQ(short_number(0.845, true), "84.5 %");
  EXPECT_EQ(short_number(1234), "1234");
  EXPECT_EQ(short_number(4123456), "4.12M");
  EXPECT_THAT(tick_labels({1.598, 1.5985, 1.599}), testing::ElementsAre("1.598", "1.5985", "1.599"));
  EXPECT_THAT(tick_labels({0.5, 0.75}, true), testing::ElementsAre("50 %", "75 %"));
  EXPECT_EQ(duration(187), "3 min 07 s");
}

}  // namespace
}  // namespace collimate::report
