#include "collimate/graph/rows.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "collimate/base/philox.h"

namespace collimate::graph {
namespace {

std::set<int64_t> expand(const RowSet& rows) {
  std::set<int64_t> all;
  for (const RowRange& range : rows.ranges())
    for (int64_t row = range.first; row < range.end; ++row) all.insert(row);
  return all;
}

RowSet random_rows(uint64_t uid) {
  RowSet rows;
  for (uint32_t i = 0; i < base::random_bits(1, 0, uid, 99) % 5; ++i) {
    const int64_t first = static_cast<int64_t>(base::random_bits(1, 1, uid, i) % 30);
    rows.add({first, first + static_cast<int64_t>(base::random_bits(1, 2, uid, i) % 6)});
  }
  return rows;
}

TEST(RowSet, BehavesAsASetOfNumbers) {
  for (uint64_t uid = 0; uid < 300; ++uid) {
    const RowSet a = random_rows(2 * uid), b = random_rows(2 * uid + 1);
    const std::set<int64_t> x = expand(a), y = expand(b);
    std::set<int64_t> both, without = x, either = x;
    for (int64_t row : y) {
      if (x.count(row)) both.insert(row);
      without.erase(row);
      either.insert(row);
    }
    RowSet sum = a, rest = a;
    sum.merge(b);
    rest.subtract(b);
    EXPECT_EQ(expand(a.intersect(b)), both);
    EXPECT_EQ(expand(sum), either);
    EXPECT_EQ(expand(rest), without);
    EXPECT_EQ(static_cast<size_t>(a.count()), x.size());
    EXPECT_EQ(a.contains(b), both == y);
    EXPECT_EQ(a.clip({7, 20}), a.intersect(RowSet(7, 20)));
    EXPECT_EQ(nlohmann::json(a).get<RowSet>(), a);
    for (size_t i = 1; i < sum.ranges().size(); ++i) EXPECT_LT(sum.ranges()[i - 1].end, sum.ranges()[i].first);
  }
}

TEST(RowSet, WholeGroupsAreAligned) {
  RowSet rows(1, 9);
  rows.add({11, 12});
  EXPECT_EQ(rows.whole_groups(4), RowSet(4, 8));
}

}  // namespace
}  // namespace collimate::graph
