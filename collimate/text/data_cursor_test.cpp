#include "collimate/text/data_cursor.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "collimate/base/memory_state.h"
#include "collimate/text/test_files.h"

namespace collimate::text {
namespace {

using testing::HasSubstr;

std::vector<int64_t> rows_of(const std::vector<Draw>& draws) {
  std::vector<int64_t> rows;
  for (const Draw& draw : draws) rows.push_back(draw.row);
  return rows;
}

TEST(DataCursor, AnEpochHasEveryRowOnceAndTheNextAnotherOrder) {
  DataCursor cursor({.rows = 100, .seed = 7});
  const auto first = rows_of(cursor.next(100));
  const auto second = rows_of(cursor.next(100));
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 100u);
  EXPECT_EQ(std::set<int64_t>(second.begin(), second.end()).size(), 100u);
  EXPECT_NE(first, second);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  EXPECT_EQ(rows_of(DataCursor({.rows = 100, .seed = 7}).next(100)), first);
  EXPECT_NE(rows_of(DataCursor({.rows = 100, .seed = 8}).next(100)), first);
}

// Each row is about as often first as any other.
TEST(DataCursor, ShufflesEvenly) {
  std::map<int64_t, int> first;
  for (uint64_t seed = 0; seed < 4000; ++seed) ++first[DataCursor({.rows = 4, .seed = seed}).next(1)[0].row];
  for (const auto& [row, count] : first) EXPECT_NEAR(count, 1000, 150) << row;
}

TEST(DataCursor, LastRowsAreDroppedKeptOrWrapped) {
  DataCursor drop({.rows = 5, .shuffle = false, .last = LastRows::kDrop});
  drop.next(3);
  EXPECT_EQ(rows_of(drop.next(3)), (std::vector<int64_t>{0, 1, 2}));
  DataCursor keep({.rows = 5, .shuffle = false, .last = LastRows::kKeep});
  keep.next(3);
  EXPECT_EQ(rows_of(keep.next(3)), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(rows_of(keep.next(3)), (std::vector<int64_t>{0, 1, 2}));
  DataCursor wrap({.rows = 5, .shuffle = false, .last = LastRows::kWrap});
  wrap.next(3);
  const auto wrapped = wrap.next(3);
  EXPECT_EQ(rows_of(wrapped), (std::vector<int64_t>{3, 4, 0}));
  EXPECT_EQ(wrapped[1].epoch, 0);
  EXPECT_EQ(wrapped[2].epoch, 1);
}

TEST(DataCursor, EndsAfterItsEpochs) {
  DataCursor drop({.rows = 5, .last = LastRows::kDrop, .epochs = 2});
  EXPECT_EQ(drop.next(4).size() + drop.next(4).size(), 8u);
  EXPECT_TRUE(drop.next(4).empty());
  EXPECT_TRUE(drop.next(4).empty());
  DataCursor keep({.rows = 5, .last = LastRows::kKeep, .epochs = 1});
  EXPECT_EQ(keep.next(4).size(), 4u);
  EXPECT_EQ(keep.next(4).size(), 1u);
  EXPECT_TRUE(keep.next(4).empty());
}

TEST(DataCursor, RepeatsStandTogether) {
  DataCursor cursor({.rows = 3, .shuffle = false, .repeats = 2});
  EXPECT_EQ(cursor.next(2), (std::vector<Draw>{{0, 0, 0}, {0, 0, 1}, {1, 0, 0}, {1, 0, 1}}));
}

TEST(DataCursor, ALoadedCursorGoesOnExactly) {
  for (const LastRows last : {LastRows::kDrop, LastRows::kKeep, LastRows::kWrap}) {
    const CursorOptions options{.rows = 11, .weights = {{4, 2.0}, {7, 0.5}}, .seed = 3, .last = last, .repeats = 2};
    for (int steps = 0; steps < 12; ++steps) {
      DataCursor whole(options);
      for (int i = 0; i < steps; ++i) whole.next(3);
      base::MemoryState memory;
      whole.save(memory);
      DataCursor resumed(options);
      resumed.load(memory);
      EXPECT_EQ(resumed.epoch(), whole.epoch());
      for (int i = 0; i < 10; ++i) ASSERT_EQ(resumed.next(3), whole.next(3)) << steps;
    }
  }
}

TEST(DataCursor, WeightsSayHowOftenRowsAreUsed) {
  const CursorOptions options{.rows = 12, .weights = {{2, 2.0}, {10, 0.5}}, .seed = 1};
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

TEST(DataCursor, Errors) {
  EXPECT_EQ(message_of<base::InputError>([] { DataCursor cursor({.rows = 0}); }),
            "[data] expected at least one row, got an empty data set");
  DataCursor small({.rows = 3});
  EXPECT_THAT(message_of<base::InputError>([&] { small.next(4); }),
              HasSubstr("at least the 4 rows of one draw, got 3"));
  base::MemoryState memory;
  small.save(memory);
  DataCursor other({.rows = 4});
  EXPECT_THAT(message_of<base::InputError>([&] { other.load(memory); }), HasSubstr("\"rows\":3"));
  DataCursor seeded({.rows = 3, .seed = 9});
  EXPECT_THAT(message_of<base::InputError>([&] { seeded.load(memory); }), HasSubstr("the same data, seed"));
}

}  // namespace
}  // namespace collimate::text
