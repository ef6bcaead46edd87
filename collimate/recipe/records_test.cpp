#include "collimate/recipe/records.h"

#include <gtest/gtest.h>

namespace collimate::recipe {
namespace {

TEST(Records, WhatIsExpectedIsTheGroundTruthAsText) {
  EXPECT_EQ(expected_of({{"ground_truth", "012"}, {"prompt", "102="}}), "012");
  EXPECT_EQ(expected_of({{"ground_truth", {1, 2}}}), "[1,2]");
  EXPECT_EQ(expected_of({{"ground_truth", nullptr}}), "");
  EXPECT_EQ(expected_of({{"prompt", "102="}}), "");
}

}  // namespace
}  // namespace collimate::recipe
