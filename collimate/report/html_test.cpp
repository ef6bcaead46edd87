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

TEST(Numbers, ThatAreRoundedUpHaveNoExponent) {
  EXPECT_EQ(short_number(999.4), "999");
  EXPECT_EQ(short_number(999.6), "1000");
  EXPECT_EQ(short_number(-999.6), "-1000");
  EXPECT_EQ(short_number(1234.6), "1235");
  EXPECT_EQ(short_number(9999.4), "9999");
  EXPECT_EQ(short_number(9999.6), "10k");
  EXPECT_EQ(short_number(999.4e3), "999k");
  EXPECT_EQ(short_number(999.6e3), "1M");
  EXPECT_EQ(short_number(999.6e6), "1G");
  EXPECT_EQ(short_number(123.4, false, 2), "123");
  EXPECT_EQ(short_number(12, true), "1200 %");
  EXPECT_EQ(short_number(1e-5), "1e-05");
  EXPECT_EQ(duration(0.9994), "999 ms");
  EXPECT_EQ(duration(0.9996), "1 s");
}

}  // namespace
}  // namespace collimate::report
