#include "collimate/graph/weight_ranks.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/graph/sample_graphs.h"

namespace collimate::graph {
namespace {

using Place = std::array<int, 7>;  // worker; tensor, stage and expert rank; ranks of these

std::vector<Place> places(const std::vector<shape::WeightRank>& ranks) {
  std::vector<Place> all;
  for (const auto& [worker, place, shared, experts] : ranks)
    all.push_back({worker, place.tensor.rank, place.stage.rank, place.experts.rank, place.tensor.ranks,
                   place.stage.ranks, place.experts.ranks});
  return all;
}

// Two groups of eight devices that share none.
Placement two_sides() {
  Placement placement;
  placement.devices = 12;
  placement.groups["training"] = {{0, 1, 2, 3, 4, 5, 6, 7}, {"trainer", "value", "reference", "reward"}};
  placement.groups["rollout"] = {{8, 9, 10, 11}, {"policy"}};
  return placement;
}

TEST(WeightRanks, TensorRanksAreTheFastestThenStagesThenCopies) {
  Placement placement = two_sides();
  placement.layouts["trainer"]["train"] = {.tp = 2, .pp = 2, .ep = 2};
  EXPECT_EQ(places(weight_ranks(samples::ppo(), placement, "trainer", {"train"})),
            (std::vector<Place>{{0, 0, 0, 0, 2, 2, 2},
                                {1, 1, 0, 0, 2, 2, 2},
                                {2, 0, 1, 0, 2, 2, 2},
                                {3, 1, 1, 0, 2, 2, 2},
                                {4, 0, 0, 1, 2, 2, 2},
                                {5, 1, 0, 1, 2, 2, 2},
                                {6, 0, 1, 1, 2, 2, 2},
                                {7, 1, 1, 1, 2, 2, 2}}));
  placement.layouts["policy"]["generate"].tp = 2;  // two replicas
  EXPECT_EQ(places(weight_ranks(samples::ppo(), placement, "policy", {"generate"})),
            (std::vector<Place>{
                {8, 0, 0, 0, 2, 1, 1}, {9, 1, 0, 0, 2, 1, 1}, {10, 0, 0, 0, 2, 1, 1}, {11, 1, 0, 0, 2, 1, 1}}));
}

TEST(WeightRanks, RanksOfStage3KeepShares) {
  Placement placement = two_sides();
  placement.layouts["trainer"]["train"] = {.tp = 2, .ep = 2, .zero = 3};
  const auto ranks = weight_ranks(samples::ppo(), placement, "trainer", {"train"});
  ASSERT_EQ(ranks.size(), 8U);
  for (int i = 0; i < 8; ++i) {
    const shape::WeightRank& rank = ranks.at(static_cast<size_t>(i));
    EXPECT_EQ(rank.all, (shape::ShareRank{i / 2, 4}));
    EXPECT_EQ(rank.experts, (shape::ShareRank{i / 4, 2}));
    EXPECT_EQ(rank.place.experts.rank, i / 2 % 2);
  }
}

// Workers that have the same part of both models have it already.
TEST(WeightRanks, WhoHasTheSamePartTakesItThere) {
  Placement placement = two_sides();
  placement.groups["rollout"].devices = {0, 1, 8, 9};
  const auto here = [&](int worker) {
    const nlohmann::json calls = {{"trainer", {"train"}}, {"policy", {"generate"}}};
    return link_ends(samples::ppo(), placement, "trainer", "policy", calls).is_here(worker);
  };
  EXPECT_TRUE(here(0));
  EXPECT_FALSE(here(8));
  placement.layouts["trainer"]["train"].tp = 2;
  EXPECT_FALSE(here(0));
  placement.layouts["policy"]["generate"].tp = 2;
  EXPECT_TRUE(here(1));
  for (const auto& [model, function] : {std::pair("trainer", "train"), {"policy", "generate"}})
    placement.layouts[model][function] = {.tp = 1, .pp = 2, .stages = {1, 3}};
  EXPECT_TRUE(here(1));
  placement.layouts["policy"]["generate"].stages = {2, 2};
  EXPECT_FALSE(here(1));
  for (const auto& [model, function] : {std::pair("trainer", "train"), {"policy", "generate"}})
    placement.layouts[model][function] = {.pp = 2, .virtual_stages = 2};
  EXPECT_TRUE(here(1));
  placement.layouts["policy"]["generate"].virtual_stages = 1;
  EXPECT_FALSE(here(1));
  for (const auto& [model, function] : {std::pair("trainer", "train"), {"policy", "generate"}})
    placement.layouts[model][function] = {.tp = 2};
  placement.layouts["trainer"]["train"].zero = 3;
  EXPECT_FALSE(here(1));
}

}  // namespace
}  // namespace collimate::graph
