// Clusters of several kinds of device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "collimate/plan/cost/functions.h"
#include "collimate/plan/search/search.h"
#include "collimate/plan/search/slots.h"
#include "collimate/plan/search/subclusters.h"
#include "collimate/plan/simulate/simulate_plan.h"
#include "tests/support/plan/inputs/sample_request.h"
#include "tests/support/plan/search/exhaustive.h"
#include "tests/support/plan/search/searches.h"

namespace collimate::plan {
namespace {

using testing::HasSubstr;

// Three models on two devices of each of two kinds: all on all; two or three slices in every order in which another
// kind falls to one of them; the same of two models, with the third on all.
TEST(Kinds, SlicesComeInEveryOrderOnce) {
  const std::vector<std::string> names = {"a", "b", "c"};
  std::set<std::string> texts;
  const std::vector<Slots> all = enumerate_slots(3, 4, 1, {2});
  for (const Slots& slots : all) {
    int at = 0;
    for (size_t i = nested(slots) ? 1 : 0; i < slots.size(); ++i) {
      EXPECT_EQ(slots[i].first, at);
      at += slots[i].count;
    }
    EXPECT_EQ(at, 4);
    EXPECT_TRUE(texts.insert(slots_text(slots, names) + form_text(slots, names)).second);
  }
  EXPECT_EQ(all.size(), 49U);
  for (const char* text : {"a 2 | b+c 2", "b+c 2 | a 2", "c 1 | a+b 3", "a+b 3 | c 1"})
    EXPECT_THAT(texts, testing::Contains(testing::StartsWith(text)));
}

TEST(Kinds, SlicesEndAtTheBordersOfKinds) {
  const auto ends = [](int devices, const std::vector<int>& borders) {
    std::set<int> found;
    for (const Slots& slots : enumerate_slots(2, devices, slot_unit(devices, true), borders))
      for (const Slot& slot : slots) found.insert(slot.first + slot.count);
    return found;
  };
  EXPECT_EQ(slot_unit(128, true), 16);
  EXPECT_THAT(ends(32, {12}), testing::ElementsAre(4, 8, 12, 16, 20, 24, 28, 32));
  EXPECT_THAT(ends(32, {6, 26}), testing::ElementsAre(4, 6, 10, 14, 18, 22, 26, 30, 32));
}

TEST(Kinds, APartOfThemMayBeLeftUnused) {
  const auto parts = [](const char* cluster) {
    std::vector<std::string> texts;
    for (const Subcluster& part : subclusters(request_for("llama2-7b", cluster, "grpo,64,64x64")))
      texts.push_back(cluster_text(part.request.cluster) + " from " + std::to_string(part.devices.front()));
    return texts;
  };
  EXPECT_THAT(parts("3x8xH100"), testing::ElementsAre("3x8xH100-80 from 0"));
  EXPECT_THAT(parts("8xA100-80+8xH100"),
              testing::ElementsAre("1x8xA100-80+1x8xH100-80 from 0", "1x8xH100-80 from 8", "1x8xA100-80 from 0"));
  EXPECT_THAT(parts("3x8xA100-80+1x7xH100"),
              testing::ElementsAre("3x8xA100-80+1x7xH100-80 from 0", "2x8xA100-80+1x4xH100-80 from 0",
                                   "1x7xH100-80 from 24", "3x8xA100-80 from 0"));
  EXPECT_EQ(parts("8xA100-80+8xH20+8xH100").size(), 7U);
}

// Branch and bound over fronts against trying everything, as with one kind.
TEST(Kinds, TheSearchFindsTheBestOfAllOnSmallCases) {
  double widest = 0;
  for (const auto& [cluster, model] :
       {std::pair("1xA100-80+1xH100-80", "qwen2.5-1.5b"), std::pair("1xA100-80+1xH100-80", "llama2-7b"),
        std::pair("1xA100-40+2xH20", "qwen2.5-3b"), std::pair("1xH200+1xA100-40+1xH100", "llama2-7b"),
        std::pair("2xA100-40+2xH100-80", "llama2-7b")})
    for (const int staleness : {0, 1}) widest = std::max(widest, gap_to_the_best(model, cluster, staleness));
  RecordProperty("gap", std::to_string(widest));
  EXPECT_LE(widest, 0.001);
}

TEST(Kinds, OneKindWrittenAsTwoIsOne) {
  const SearchResult two = search(request_for("llama2-7b", "4xA100-80+4xA100-80", "ppo,512,512x512"));
  const SearchResult one = search(request_for("llama2-7b", "8xA100-80", "ppo,512,512x512"));
  EXPECT_EQ(two.placements, one.placements);
  ASSERT_EQ(two.plans.size(), one.plans.size());
  for (size_t i = 0; i < one.plans.size(); ++i) {
    EXPECT_EQ(two.plans[i].placement, one.plans[i].placement);
    EXPECT_EQ(two.plans[i].seconds, one.plans[i].seconds);
  }
}

// Slices of two kinds cost the same where the kinds do not differ.
TEST(Kinds, TwoKindsThatAreAlikeAreAsFastAsOne) {
  Request request = request_for("qwen2.5-1.5b", "2x2xA100-80", "ppo,64,256x512");
  const double one = search(request).seconds;
  request.cluster.groups[0].nodes = 1;
  request.cluster.groups.push_back(request.cluster.groups[0]);
  EXPECT_NEAR(search(request).seconds, one, 1e-9 * one);
}

// The choice is at least as fast as on the devices of either kind alone: within what plans that are alike may differ
// by, and the estimate from the schedule.
TEST(Kinds, MoreDevicesOfAnotherKindAreNotSlower) {
  const auto seconds = [](const std::string& cluster) {
    return search(request_for("llama2-7b", cluster, "grpo,512,512x512")).plans.at(0).seconds;
  };
  const double fast = seconds("8xH100"), middle = seconds("8xA100-80");
  const double both = seconds("8xA100-80+8xH100");
  EXPECT_LE(both, 1.015 * std::min(fast, middle));
  EXPECT_LE(seconds("8xH100+8xV100"), 1.015 * fast);
  EXPECT_LE(seconds("1xV100+8xH100"), 1.015 * fast);
  EXPECT_LE(both, 1.015 * seconds("2x8xA100-80")) << "H100 are faster than A100 in everything";
}

// Faster devices decode, slower ones train, or the other way round: whatever is better, not what is listed first.
TEST(Kinds, TheOrderInTheListDoesNotMatter) {
  const auto seconds = [](const std::string& cluster) {
    return search(request_for("llama2-7b", cluster, "ppo,256,512x512")).seconds;
  };
  const double one = seconds("4xA100-80+4xH20");
  EXPECT_NEAR(seconds("4xH20+4xA100-80"), one, 0.02 * one);
}

// Each rank holds its model whole, and a trained one is too large for a V100: trainers go to the H200.
TEST(Kinds, WhatIsTooLargeForOneGoesToTheOther) {
  Request request = request_for("qwen2.5-1.5b", "1xV100-32+1xH200", "ppo,64,256x256");
  request.whole = true;
  Request small = request;
  small.cluster = parse_cluster("1xV100-32");
  EXPECT_TRUE(search(small).plans.empty());
  const SearchResult result = search(request);
  ASSERT_FALSE(result.plans.empty());
  for (const Plan& plan : result.plans) {
    graph::validate(request.graph, plan.placement);
    EXPECT_EQ(misfit_of(request, plan), "") << plan.parts;
    for (const Call& call : plan.calls)
      if (call.function == "train") {
        EXPECT_EQ(call.devices, std::vector<int>{1}) << plan.parts;
      }
  }
}

TEST(Kinds, WhatFitsNowhereIsExplainedForEach) {
  Request request = request_for("qwen2.5-7b", "1xV100-32+1xA100-40", "ppo,64,256x256");
  request.whole = true;
  const SearchResult result = search(request);
  EXPECT_TRUE(result.plans.empty());
  EXPECT_THAT(result.why, testing::StartsWith("on 1x1xV100-32+1x1xA100-40: policy"));
  for (const char* part :
       {"; on 1x1xV100-32: ", "; on 1x1xA100-40: ", "on a device of 32.0 GB", "on a device of 40.0 GB", "of which"})
    EXPECT_THAT(result.why, HasSubstr(part));
}

// Bytes are counted against each kind's own.
TEST(Kinds, AMisfitNamesTheKind) {
  const Request request = request_for("llama2-13b", "1xH200+1xV100-32", "ppo,64,256x256");
  const Plan plan = cost_placement(request, graph::flattening(request.graph, 2, "cuda"));
  ASSERT_EQ(plan.memory.size(), 2U);
  EXPECT_EQ(plan.memory[0].usable_bytes, usable_bytes(DeviceKinds().find("H200-141"), request.constants));
  EXPECT_EQ(plan.memory[1].usable_bytes, usable_bytes(DeviceKinds().find("V100-32"), request.constants));
  EXPECT_THAT(misfit_of(request, plan), testing::StartsWith("device 0, H200-141, needs"));
}

Plan simulated_plan(const Request& request, const graph::Placement& placement) {
  Plan plan = cost_placement(request, placement);
  set_times(plan, simulate_plan(request, plan));
  return plan;
}

// An A100 is no faster than an H100 in anything, so that both in step are as A100 alone; a group on one kind has its
// speed.
TEST(Kinds, APlacementOverBothTakesTheTimeOfTheSlower) {
  const Request mixed = request_for("llama2-7b", "8xA100-80+8xH100", "ppo,512,512x512");
  const Request slow = request_for("llama2-7b", "2x8xA100-80", "ppo,512,512x512");
  const graph::Placement flat = graph::flattening(mixed.graph, 16, "cuda");
  EXPECT_EQ(simulated_plan(mixed, flat).seconds, simulated_plan(slow, flat).seconds);
  graph::Placement apart = flat;
  apart.groups.clear();
  apart.groups["fast"] = {{8, 9, 10, 11, 12, 13, 14, 15}, {"policy", "policy_trainer"}};
  apart.groups["slow"] = {{0, 1, 2, 3, 4, 5, 6, 7}, {"reference", "value", "reward"}};
  const Request fast = request_for("llama2-7b", "2x8xH100", "ppo,512,512x512");
  const Plan of_both = cost_placement(mixed, apart), of_fast = cost_placement(fast, apart);
  const Plan of_slow = cost_placement(slow, apart);
  EXPECT_EQ(of_both.parts, "policy+policy_trainer 8 H100-80 | reference+value+reward 8 A100-80");
  for (size_t i = 0; i < of_both.calls.size(); ++i) {
    const bool is_fast = !of_both.calls[i].devices.empty() && of_both.calls[i].devices[0] == 8;
    EXPECT_EQ(of_both.calls[i].seconds, (is_fast ? of_fast : of_slow).calls[i].seconds) << of_both.calls[i].model;
  }
}

// Generation on both devices. What is trained on the H200 beside it takes no room for keys and values from the A100,
// which is what the pool is made for: it has all that it would have without.
TEST(Kinds, APoolIsWhatTheFullestDeviceHasLeft) {
  const Request request = request_for("qwen2.5-1.5b", "1xH200+1xA100-40", "ppo,64,256x256");
  graph::Placement placement;
  placement.kind = "cuda";
  placement.devices = 2;
  placement.groups["both"] = {{0, 1}, {"policy"}};
  placement.groups["large"] = {{0}, {"policy_trainer", "value", "reference", "reward"}};
  const Plan plan = cost_placement(request, placement);
  EXPECT_EQ(misfit_of(request, plan), "");
  EXPECT_GT(plan.memory.at(0).resident_bytes, plan.memory.at(1).usable_bytes);
  const Call& generation = plan.calls.at(0);
  const Job job = job_of(request, Functions(request), 0, request.cluster.kinds(generation.devices), 2);
  EXPECT_EQ(generation.seconds, generate_time(job, generation.how, request.constants, 0).total());
}

}  // namespace
}  // namespace collimate::plan
