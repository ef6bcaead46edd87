#include "collimate/plan/digits.h"

#include <gtest/gtest.h>

namespace collimate::plan {
namespace {

TEST(Digits, AreThreeOrTheDecimals) {
  EXPECT_EQ(three_digits(150.634, 2), "150.63");
  EXPECT_EQ(three_digits(1.05, 2), "1.05");
  EXPECT_EQ(three_digits(0.02134, 2), "0.0213");
  EXPECT_EQ(three_digits(0.001, 1), "0.00100");
  EXPECT_EQ(three_digits(-0.5, 1), "-0.500");
  EXPECT_EQ(three_digits(3e-9, 2), "0.000000");
  EXPECT_EQ(three_digits(0, 2), "0.00");
  EXPECT_EQ(three_digits(2010, 1), "2010.0");
}

}  // namespace
}  // namespace collimate::plan
