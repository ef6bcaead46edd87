#include <gtest/gtest.h>

#include <set>

#include "collimate/base/at.h"
#include "collimate/graph/trace.h"
#include "collimate/plan/search/neighbours.h"
#include "collimate/plan/search/search.h"
#include "tests/support/plan/inputs/sample_request.h"

namespace collimate::plan {
namespace {

// PPO with so many more reward models.
Request with_rewards(int more, const std::string& cluster) {
  Request request = request_for("llama2-7b", cluster, "ppo,512,512xmean:500,0.8,2048");
  graph::Graph& graph = request.graph;
  for (int i = 0; i < more; ++i) {
    const std::string name = "judge" + std::to_string(i);
    graph.models[name] = graph.models.at("reward");
    for (graph::FunctionSpec& spec : graph.models[name].functions)
      for (graph::Column& column : spec.makes) column.name += std::to_string(i);
    graph::Node node = base::at(graph.nodes, graph.node_index("reward.score"));
    node.id = name + ".score";
    node.model = name;
    node.outputs = {name + ".score"};
    graph.nodes.push_back(node);
  }
  graph::validate(graph);
  return request;
}

void expect_whole(const Slots& slots, int models, int devices) {
  std::set<int> placed;
  int covered = 0;
  for (const Slot& slot : slots) {
    for (const int model : slot.models) EXPECT_TRUE(placed.insert(model).second);
    if (slots.size() == 1 || !nested(slots) || &slot != &slots.front()) covered += slot.count;
    EXPECT_FALSE(slot.models.empty());
  }
  EXPECT_EQ(static_cast<int>(placed.size()), models);
  EXPECT_EQ(covered, devices);
}

TEST(LocalSearch, NeighboursHoldEveryModelOnce) {
  std::set<std::string> reached;
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  std::vector<Slots> open = first_slots(4, 8, 2);
  for (int round = 0; round < 4; ++round) {
    std::vector<Slots> next;
    for (const Slots& slots : open) {
      expect_whole(slots, 4, 8);
      for (Slots& each : neighbours(slots, 2))
        if (reached.insert(slots_text(each, names) + form_text(each, names)).second) next.push_back(std::move(each));
    }
    open = std::move(next);
  }
  for (const Slots& slots : enumerate_slots(4, 8, 2))
    EXPECT_TRUE(reached.contains(slots_text(slots, names) + form_text(slots, names))) << slots_text(slots, names);
}

// Five models can be looked at both ways.
TEST(LocalSearch, FindsWhatLookingAtAllDoes) {
  for (const char* cluster : {"1x8xA100-80", "4x8xH100-80"})
    for (const char* workload : {"ppo,512,512x512", "ppo,1024,512xmean:900,0.8,4096"})
      for (const char* model : {"llama2-7b", "llama2-13b"}) {
        Request request = request_for(model, cluster, workload);
        const double all = search(request).plans.at(0).seconds;
        request.enumerated_models = 2;
        const SearchResult local = search(request);
        EXPECT_LE(local.plans.at(0).seconds, 1.01 * all) << cluster << " " << workload << " " << model;
        EXPECT_LT(local.placements, 3000);
      }
}

TEST(LocalSearch, SixToEightModelsLookAtFewPlacements) {
  for (const int more : {1, 3}) {
    const Request request = with_rewards(more, "4x8xA100-80");
    const SearchResult result = search(request);
    ASSERT_FALSE(result.plans.empty());
    EXPECT_LT(result.placements, 5000);
    graph::validate(request.graph, result.plans[0].placement);
    Request flat = request;
    flat.form = "flattening";
    EXPECT_LE(result.plans[0].seconds, kAlike * search(flat).plans.at(0).seconds);
  }
}

}  // namespace
}  // namespace collimate::plan
