#include "collimate/base/edit_distance.h"

#include <gtest/gtest.h>

#include "collimate/base/nearest_number.h"

namespace collimate::base {
namespace {

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", "abc"), 0u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("lerning_rate", "learning_rate"), 1u);
  EXPECT_EQ(edit_distance("setps", "steps"), 1u) << "a swap of neighbours is one edit";
  EXPECT_EQ(edit_distance("abc", "cab"), edit_distance("cab", "abc"));
}

TEST(EditDistance, NearestOrNone) {
  EXPECT_EQ(nearest("temprature", {"top_p", "temperature", "top_k"}), "temperature");
  EXPECT_EQ(nearest("colour", {"top_p", "temperature"}), "");
  EXPECT_EQ(nearest("samples", {"examples", "samples_per_prompt"}), "samples_per_prompt");
  EXPECT_EQ(nearest("sample", {"samples", "sample_rows"}), "samples");
  EXPECT_EQ(nearest("x", {"a", "b"}), "") << "a one-letter name is not near to another";
}

TEST(EditDistance, ClosestIsAlwaysOne) {
  EXPECT_EQ(closest("policy", {"value", "policy_trainer"}), "policy_trainer") << "what begins with it comes first";
  EXPECT_EQ(closest("colour", {"top_p", "cold"}), "cold");
  EXPECT_EQ(closest("VALUE", {"policy", "value"}), "value");
  EXPECT_EQ(closest("", {"a", "b"}), "a");
  EXPECT_EQ(closest("a", {}), "");
}

TEST(NearestNumber, IsWithinTheLimits) {
  EXPECT_EQ(nearest_number("17", 0, 16), "16");
  EXPECT_EQ(nearest_number("-1", 0, 16), "0");
  EXPECT_EQ(nearest_number("1.5", 1, 16, "", true), "2");
  EXPECT_EQ(nearest_number("many", 0, 16, "4"), "4");
  EXPECT_EQ(nearest_number("nan", 0, 16), "");
}

}  // namespace
}  // namespace collimate::base
