#include "collimate/plan/search/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "collimate/base/error.h"
#include "collimate/plan/search/placements.h"
#include "collimate/plan/simulate/simulate_plan.h"
#include "tests/support/base/error_of.h"
#include "tests/support/plan/inputs/sample_request.h"
#include "tests/support/plan/search/exhaustive.h"
#include "tests/support/plan/search/searches.h"

namespace collimate::plan {
namespace {

// All devices covered by models in slots that either coincide, nest or are apart; each model once.
TEST(Slots, EachPlacementOnceAndWhole) {
  const std::vector<std::string> names = {"a", "b", "c"};
  const std::vector<Slots> all = enumerate_slots(3, 4, 1);
  std::set<std::string> texts;
  for (const Slots& slots : all) {
    int placed = 0, covered = 0;
    for (const Slot& slot : slots) {
      placed += static_cast<int>(slot.models.size());
      if (slots.size() == 1 || slot.count < 4) covered += slot.count;
    }
    EXPECT_EQ(placed, 3);
    EXPECT_EQ(covered, 4);
    EXPECT_TRUE(texts.insert(slots_text(slots, names) + form_text(slots, names)).second);
  }
  // Flattening 1; of all three: 3 pairs of blocks × 3 sizes, 1 triple × 3; one shared: 3 × (1 pair × 3 sizes).
  EXPECT_EQ(all.size(), 1U + 9 + 3 + 9);
}

TEST(Slots, SlicesBeginWhereTheirRanksDoNotStraddleNodes) {
  Slots slots = {{{0}, 0, 3}, {{1}, 0, 12}, {{2}, 0, 8}, {{3}, 0, 5}};
  align(slots, 0);
  const std::vector<int> first = {0, 8, 20, 23}, count = {8, 12, 3, 5};
  for (size_t i = 0; i < slots.size(); ++i) {
    EXPECT_EQ(slots[i].first, first[i]) << i;
    EXPECT_EQ(slots[i].count, count[i]) << i;
  }
}

TEST(Slots, SlicesKeepTheirNumberSmall) {
  EXPECT_EQ(slot_unit(8), 1);
  EXPECT_EQ(slot_unit(128), 8);
  EXPECT_EQ(slot_unit(1024), 64);
  EXPECT_EQ(slot_unit(127), 8);
}

// In units of one, 127 devices would have ten million placements of five models.
TEST(Slots, APrimeNumberOfDevicesHasFewPlacementsToo) {
  const std::vector<Slots> all = enumerate_slots(5, 127, slot_unit(127));
  EXPECT_LT(all.size(), 20000U);
  EXPECT_EQ(all.size(), enumerate_slots(5, 120, 8).size());
  for (const Slots& slots : all) {
    int covered = 0;
    for (const Slot& slot : slots)
      if (slots.size() == 1 || slot.count < 127) covered += slot.count;
    ASSERT_EQ(covered, 127);
    ASSERT_EQ(devices_of(slots), 127);
  }
}

// Branch and bound over fronts against trying everything; the gap is printed.
TEST(Search, IsTheBestOfAllOnSmallCases) {
  double widest = 0;
  for (const char* cluster : {"1x2xA100-80", "1x4xA100-40", "1x3xH20", "1x4xH20"})
    for (const int staleness : {0, 1})
      for (const char* model : {"qwen2.5-1.5b", "qwen2.5-3b", "llama2-7b", "llama2-13b"})
        widest = std::max(widest, gap_to_the_best(model, cluster, staleness));
  RecordProperty("gap", std::to_string(widest));
  EXPECT_LE(widest, 0.001);
}

// More models, and more devices, with fewer ways for each function: what trains keeps its activations and its
// optimizer, and so many rows decode at once.
TEST(Search, IsTheBestOfAllOfFiveModelsAndOnEightDevices) {
  double widest = 0;
  const auto compare = [&](const char* model, const char* cluster, const char* workload, int staleness) {
    Request request = request_for(model, cluster, workload);
    request.micro_batch = 4;
    request.load.staleness = staleness;
    request.fixed["policy.generate"].micro_batch = 8;
    for (const char* trainer : {"policy_trainer.train", "value.train"})
      if (request.graph.node_index(trainer) >= 0)
        request.fixed[trainer].recompute = request.fixed[trainer].offload = false;
    const SearchResult quick = search(request), full = search_exhaustively(request);
    ASSERT_FALSE(quick.plans.empty()) << cluster;
    EXPECT_GE(quick.seconds, full.seconds - 1e-9) << cluster << " " << model;
    widest = std::max(widest, quick.seconds / full.seconds - 1);
  };
  for (const int staleness : {0, 1}) {
    compare("qwen2.5-0.5b", "1x2xA100-80", "ppo,64,256x512", staleness);
    compare("llama2-7b", "1x8xA100-80", "grpo,64,256x512", staleness);
  }
  RecordProperty("gap", std::to_string(widest));
  EXPECT_LE(widest, 0.001);
}

TEST(Search, PlansFitAndTheRuntimeReadsThem) {
  for (const char* workload : {"ppo,512,512x512", "grpo,512,512x512"}) {
    const Request request = request_for("llama2-7b", "1x8xA100-80", workload);
    const SearchResult result = search(request);
    ASSERT_GE(result.plans.size(), 3U);
    for (const Plan& plan : result.plans) {
      EXPECT_LE(plan.peak_bytes, usable_bytes(DeviceKinds().find("A100-80"), request.constants) * (1 + 1e-9));
      graph::validate(request.graph, plan.placement);
      EXPECT_EQ(graph::parse_placement(graph::yaml_text(plan.placement)), plan.placement);
    }
  }
}

// Experts divide the devices of every slice, whatever their number.
TEST(Search, PlansOfExpertsAreValid) {
  for (const char* cluster : {"1x8xH100-80", "1x6xH200-141", "2x8xH100-80"}) {
    const Request request = request_for("qwen3-30b-a3b", cluster, "grpo,512,512x512");
    for (const Plan& plan : search(request).plans) graph::validate(request.graph, plan.placement);
  }
}

// The runtime's own schedule, in virtual time, agrees with the estimate that pruned the placements; with several
// iterations under way on devices that overlap in part it may differ more.
TEST(Search, TheSimulatorAgrees) {
  for (const char* cluster : {"1x8xA100-80", "2x8xH100"})
    for (const char* workload : {"ppo,512,512x512", "grpo,1024,512xmean:900,0.8,4096"})
      for (const int staleness : {0, 1, 3}) {
        Request request = request_for("llama2-7b", cluster, workload);
        request.load.staleness = staleness;
        for (const Plan& plan : search(request).plans)
          EXPECT_NEAR(plan.seconds, plan.estimated_seconds, (staleness > 1 ? 0.12 : 0.01) * plan.seconds)
              << cluster << " " << workload << " " << plan.parts << " staleness " << staleness;
      }
}

TEST(Search, IsDeterministic) {
  const Request request = request_for("llama2-7b", "1x8xA100-80", "grpo,1024,512x512");
  const SearchResult once = search(request), again = search(request);
  ASSERT_EQ(once.plans.size(), again.plans.size());
  for (size_t i = 0; i < once.plans.size(); ++i) EXPECT_EQ(once.plans[i].placement, again.plans[i].placement);
}

TEST(Search, MoreDevicesAreNotSlower) {
  double last = 1e9;
  for (const char* cluster : {"1x8xA100-80", "2x8xA100-80", "4x8xA100-80"}) {
    const double seconds = search(request_for("llama2-7b", cluster, "grpo,1024,512x512")).plans.at(0).seconds;
    EXPECT_LT(seconds, last);
    last = seconds;
  }
}

TEST(Search, FewerDevicesAreLookedAtToo) {
  const auto counts = [](const char* cluster) {
    const Request request = request_for("llama2-7b", cluster, "ppo,1024,512x512");
    const Functions functions(request);
    ChoiceTable table(request, functions, true);
    return device_counts(request, functions, table);
  };
  EXPECT_EQ(counts("1x7xH200-141"), (std::vector<int>{7, 6, 4}));
  EXPECT_EQ(counts("11x8xA100-80"), (std::vector<int>{88, 80, 64}));
  EXPECT_EQ(counts("2x8xA100-80"), (std::vector<int>{16}));
}

// 17 is a prime: a model of 34 billion weights is better cut on 16 of them.
TEST(Search, APrimeNumberOfDevicesIsNotSlowerThanFewer) {
  const Request prime = request_for("codellama-34b", "1x17xA100-80", "ppo,512,512x512");
  const Plan plan = search(prime).plans.at(0);
  const Plan even = search(request_for("codellama-34b", "1x16xA100-80", "ppo,512,512x512")).plans.at(0);
  EXPECT_LE(plan.seconds, 1.005 * even.seconds);
  EXPECT_EQ(plan.placement.devices, 16);
  EXPECT_EQ(unused_devices(prime, plan), (std::vector<int>{16}));
  graph::validate(prime.graph, plan.placement);
}

// Generation and training apart, one iteration ahead: the slower side alone sets the period.
TEST(Search, StalenessIsUsedWhereItPays) {
  Request request = request_for("qwen2.5-7b", "4x8xH100", "grpo,1024,512xmean:2000,1.2,16384");
  const double synchronous = search(request).plans.at(0).seconds;
  request.load.staleness = 1;
  const SearchResult ahead = search(request);
  EXPECT_LT(ahead.plans.at(0).seconds, synchronous);
}

TEST(Search, WhatCannotFitIsExplained) {
  const SearchResult result = search(request_for("llama3.1-405b", "1x8xA100-80", "ppo,64,512x512"));
  EXPECT_TRUE(result.plans.empty());
  EXPECT_THAT(result.why, testing::HasSubstr("on a device of 80.0 GB"));
  EXPECT_THAT(result.why, testing::HasSubstr("of which"));
}

// A placement that needs more than there is is said to.
TEST(Search, WhatFitsAloneAndNotTogetherNeedsMoreThanThereIs) {
  const std::pair<const char*, Request> cases[] = {
      {"kimi-k2", request_for("kimi-k2", "24x8xA100-80", "ppo,1024,512x512")},
      {"llama3.1-405b", request_for("llama3.1-405b", "8x8xA100-80", "grpo,1024,512x16384")},
      {"9 nodes", request_for("llama3.1-405b", "9x8xA100-80", "grpo,1024,512xmean:8000,1,32768")}};
  for (const auto& [name, request] : cases) {
    const std::string why = search(request).why;
    ASSERT_THAT(why, testing::HasSubstr("not all together")) << name;
    double needed = 0, usable = 0;
    const size_t at = why.find("devices ");
    ASSERT_EQ(std::sscanf(why.c_str() + at, "devices %lf GB of %lf usable", &needed, &usable), 2) << why;
    EXPECT_GT(needed, usable) << name;
  }
}

// Rows are cut (cp) where they are long, and where nothing fits otherwise.
TEST(Search, WhatFitsDoesNotFitLessForShorterRows) {
  const auto cut = [](int64_t tokens) {
    const SearchResult found =
        search(request_for("llama3.1-405b", "10x8xA100-80", "grpo,1024,1024x" + std::to_string(tokens)));
    EXPECT_FALSE(found.plans.empty()) << tokens;
    return found.cut_rows;
  };
  EXPECT_TRUE(cut(15360));
  EXPECT_FALSE(cut(15361));
  EXPECT_FALSE(cut(512));
}

// Many placements that take nearly the same time: the first ones get all partial plans that they ask for.
TEST(Search, ItsWorkIsBounded) {
  Request request = request_for("opt-350m", "16x8xA100-80", "ppo,512,64x1");
  request.constants = constants_of("verl");
  request.load.updates = 4;
  const SearchResult found = search(request);
  EXPECT_GT(found.cut_short, 100);
  EXPECT_GT(found.steps, 100 * 3000);
  EXPECT_LT(found.steps, 101 * 3000 + 51 * (found.placements - found.pruned));
}

// A limit that the program counts itself: what is over it is left out, and named where nothing else is left.
TEST(Search, WhatExceedsALimitOfTheProgramIsLeftOut) {
  Request request = request_for("opt-125m", "2xcpu", "grpo,64,64x64");
  request.whole = true;
  const auto all = [](const graph::Placement& placement) { return placement.groups.size() == 1; };
  ASSERT_TRUE(all(search(request).plans.at(0).placement));
  request.excess = [&](const graph::Placement& placement) {
    return all(placement) ? Excess{1e9, "together they need 1 GB more"} : Excess{};
  };
  const SearchResult apart = search(request);
  ASSERT_FALSE(apart.plans.empty());
  for (const Plan& plan : apart.plans) {
    EXPECT_FALSE(all(plan.placement)) << plan.parts;
    EXPECT_EQ(misfit_of(request, plan), "");
  }
  request.excess = [&](const graph::Placement& placement) {
    return all(placement) ? Excess{1e9, "1 GB more"} : Excess{2e9, "2 GB more"};
  };
  const SearchResult none = search(request);
  EXPECT_TRUE(none.plans.empty());
  EXPECT_EQ(none.why, "1 GB more");
  EXPECT_EQ(misfit_of(request, apart.plans[0]), "2 GB more");
}

// Models of devices that have no room for all of them take turns where that is allowed; their moves take time.
TEST(Search, ModelsOfADeviceWithoutRoomTakeTurns) {
  Request request = request_for("opt-125m", "2xcpu", "grpo,64,64x64");
  request.whole = true;
  request.form = "flattening";
  const double together = search(request).plans.at(0).seconds;
  request.excess = [](const graph::Placement& placement) {
    const bool turns = std::ranges::all_of(placement.groups.begin()->second.models,
                                           [&](const std::string& model) { return placement.swaps(model); });
    return turns ? Excess{} : Excess{1e9, "1 GB more", {0}};
  };
  EXPECT_EQ(search(request).why, "1 GB more");
  request.turns = true;
  const Plan turns = search(request).plans.at(0);
  EXPECT_EQ(turns.placement.residency.size(), 3U);
  EXPECT_GT(seconds_of_moves(turns), 0);
  EXPECT_GE(turns.seconds, together + seconds_of_moves(turns) * 0.99);
  EXPECT_EQ(misfit_of(request, turns), "");
  request.load.staleness = 1;
  EXPECT_EQ(search(request).why, "1 GB more");
}

// A plan of finer slices that could run only with models that take turns does not replace a faster plan of coarse ones.
TEST(Search, FinerSlicesAreTakenOnlyWhereTheyAreFasterWithTheirMoves) {
  Request request = request_for("qwen2.5-1.5b", "4x8xH100", "ppo,512,512x512");
  request.form = "split";
  request.excess = [](const graph::Placement& placement) {
    std::set<int> devices;
    bool fine = false, turns = true;
    for (const auto& [name, group] : placement.groups) {
      fine = fine || group.devices.size() % 4 != 0;
      devices.insert(group.devices.begin(), group.devices.end());
      for (const std::string& model : group.models) turns = turns && placement.swaps(model);
    }
    return fine && !turns ? Excess{1e9, "1 GB more", devices} : Excess{};
  };
  const double coarse = search(request).seconds;
  request.turns = true;
  EXPECT_LE(search(request).seconds, coarse);
}

TEST(Search, WholeModelsAreNotCut) {
  Request request = request_for("qwen2.5-0.5b", "2xH100", "ppo,64,64x64");
  request.whole = true;
  for (const Plan& plan : search(request).plans)
    for (const auto& [model, functions] : plan.placement.layouts)
      for (const auto& [function, layout] : functions) {
        const bool trains = function == "train";
        EXPECT_EQ(layout, (graph::Layout{.dp = layout.dp, .zero = layout.zero})) << model << "." << function;
        EXPECT_LE(layout.zero, trains ? 2 : 0) << model << "." << function;
      }
}

std::string why_not_searched(const Request& request) {
  return base::message_of([&] { search(request); });
}

TEST(Search, WrongRequestsAreNamed) {
  Request request = request_for("llama2-7b", "1x8xA100+1x8xcpu", "ppo,64,512x512");
  EXPECT_EQ(why_not_searched(request),
            "[cluster] expected GPUs alone or CPUs alone, got '1x8xA100-80+1x8xcpu'; try a plan for each");
  request = request_for("llama2-7b", "8xA100+8xH20+8xH100+8xH200+8xV100", "ppo,64,512x512");
  EXPECT_THAT(why_not_searched(request),
              testing::StartsWith("[cluster] expected at most 4 kinds of device, got '1x8x"));
  request.cluster.groups.clear();
  EXPECT_EQ(why_not_searched(request), "[cluster] expected at least one device, got none");
  request = request_for("llama2-7b", "8xA100", "ppo,64,512x512");
  request.models = {{"reward", request.models.at("policy")}};
  EXPECT_EQ(why_not_searched(request), "[plan] expected the shape of model policy, got none; try --models policy=NAME");
  request.models["policy"] = shape::find_outline("opt-1.3b");  // the others' too
  EXPECT_FALSE(search(request).plans.empty());
  const graph::Node scores = request.graph.node(request.graph.node_index("reward.score"));
  while (request.graph.nodes.size() < 33) {
    graph::Node& added = request.graph.nodes.emplace_back(scores);
    added.id = "more" + std::to_string(request.graph.nodes.size());
    added.outputs = {added.id};
  }
  EXPECT_EQ(why_not_searched(request),
            "[plan] expected a graph of at most 32 calls, got 33; try a placement, whose costs can be shown");
}

}  // namespace
}  // namespace collimate::plan
