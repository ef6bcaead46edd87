#include "collimate/base/edit_distance.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(nearest("x", {"a", "b"}), "") << "a one-letter name is not near to another";
}

}  // namespace
}  // namespace collimate::base
