#include "collimate/text/epoch_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace collimate::text {
namespace {

using Indices = std::vector<int64_t>;

TEST(EpochOrder, AnEpochHasEveryRowOnceAndTheNextAnotherOrder) {
  const OrderOptions options{.rows = 100, .seed = 7};
  const Indices first = epoch_order(options, 0), second = epoch_order(options, 1);
  for (const Indices& rows : {first, second}) {
    EXPECT_EQ(rows.size(), 100u);
    EXPECT_EQ(std::set<int64_t>(rows.begin(), rows.end()).size(), 100u);
  }
  EXPECT_NE(first, second);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  EXPECT_EQ(epoch_order(options, 0), first);
  EXPECT_NE(epoch_order({.rows = 100, .seed = 8}, 0), first);
}

TEST(EpochOrder, WithoutShufflingRowsStayInOrder) {
  for (int64_t epoch : {0, 1}) EXPECT_EQ(epoch_order({.rows = 3, .shuffle = false}, epoch), (Indices{0, 1, 2}));
}

// Each row is about as often first as any other.
TEST(EpochOrder, ShufflesEvenly) {
  std::map<int64_t, int> first;
  for (uint64_t seed = 0; seed < 4000; ++seed) ++first[epoch_order({.rows = 4, .seed = seed}, 0)[0]];
  for (const auto& [row, count] : first) EXPECT_NEAR(count, 1000, 150) << row;
}

TEST(EpochOrder, WeightsSayHowOftenRowsAreUsed) {
  const OrderOptions options{.rows = 12, .weights = {{2, 2.0}, {10, 0.5}}, .seed = 1};
  const auto order = epoch_order(options, 0);
  EXPECT_EQ(order.size(), 9u);
  for (const int64_t row : {0, 1}) EXPECT_EQ(std::count(order.begin(), order.end(), row), 2);
  const auto half = [&](int64_t epoch) {
    std::set<int64_t> rows;
    for (const int64_t row : epoch_order(options, epoch)) {
      if (row >= 2) rows.insert(row);
    }
    return rows;
  };
  EXPECT_EQ(half(0).size(), 5u);
  EXPECT_NE(half(0), half(1));
}

TEST(EpochOrder, SmallWeightsLeaveNoRow) { EXPECT_TRUE(epoch_order({.rows = 40, .weights = {{40, 0.01}}}, 0).empty()); }

}  // namespace
}  // namespace collimate::text
