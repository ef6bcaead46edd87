#include "collimate/flow/balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "collimate/base/philox.h"

namespace collimate::flow {
namespace {

int64_t most_of(const std::vector<int64_t>& costs, const std::vector<int64_t>& ends) {
  int64_t most = 0, begin = 0;
  for (const int64_t end : ends) {
    most = std::max(most, std::accumulate(costs.begin() + begin, costs.begin() + end, int64_t{0}));
    begin = end;
  }
  return most;
}

// The least that the most costly run of any cut has.
int64_t best_of(const std::vector<int64_t>& costs, size_t begin, int64_t parts) {
  const int64_t rest = std::accumulate(costs.begin() + static_cast<int64_t>(begin), costs.end(), int64_t{0});
  if (parts == 1) return rest;
  int64_t best = rest, run = 0;
  for (size_t end = begin; end < costs.size(); ++end) {
    run += costs[end];
    best = std::min(best, std::max(run, best_of(costs, end + 1, parts - 1)));
  }
  return best;
}

// Gives the least that a layout can have where units may go anywhere.
int64_t best_of_any(const std::vector<int64_t>& costs, size_t at, std::vector<int64_t>& loads) {
  if (at == costs.size()) return *std::ranges::max_element(loads);
  int64_t best = INT64_MAX;
  for (int64_t& load : loads) {
    load += costs[at];
    best = std::min(best, best_of_any(costs, at + 1, loads));
    load -= costs[at];
  }
  return best;
}

TEST(Balance, RunsAreTheBestOfAllCuts) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::vector<int64_t> costs(1 + base::random_bits(seed, 0, 0, 0) % 8);
    for (size_t i = 0; i < costs.size(); ++i)
      costs[i] = static_cast<int64_t>(1 + base::random_bits(seed, 1, 0, static_cast<uint32_t>(i)) % 30);
    for (const int64_t parts : {1, 2, 3, 4}) {
      const std::vector<int64_t> ends = balanced_ends(costs, parts);
      ASSERT_EQ(std::ssize(ends), parts);
      EXPECT_TRUE(std::ranges::is_sorted(ends));
      EXPECT_EQ(ends.back(), std::ssize(costs));
      EXPECT_EQ(most_of(costs, ends), best_of(costs, 0, parts)) << seed;
      std::vector<int64_t> loads(static_cast<size_t>(parts));
      EXPECT_LE(most_of(costs, ends), best_of_any(costs, 0, loads) + *std::ranges::max_element(costs)) << seed;
    }
  }
}

TEST(Balance, FewUnitsLeaveRunsEmpty) {
  EXPECT_EQ(balanced_ends({}, 2), (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(balanced_ends(std::vector<int64_t>{7}, 3), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(balanced_ends(std::vector<int64_t>{5, 5, 5, 5}, 2), (std::vector<int64_t>{2, 4}));
}

}  // namespace
}  // namespace collimate::flow
