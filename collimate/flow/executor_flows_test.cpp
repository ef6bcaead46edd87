#include <gtest/gtest.h>

#include "collimate/flow/toy_modules.h"

// Flows other than the plain one: filters with refill, staleness, models that are moved off their device.
namespace collimate::flow {
namespace {

struct Seen {
  std::vector<int64_t> rows;     // trained in each iteration
  std::vector<int32_t> weights;  // that generated the first row of each iteration
  std::vector<nlohmann::json> metrics;
};

Seen run_flow(const graph::Graph& graph, const graph::Placement& placement, const std::string& last_node,
              int64_t iterations = 4, double delay_seconds = 0) {
  Seen seen;
  RunOptions options = toy::run_options(iterations);
  options.random_delay_seconds = delay_seconds;
  options.on_iteration = [&](const IterationResult& result) {
    const Batch& rows = result.batches.at(last_node);
    seen.rows.push_back(rows.rows());
    seen.weights.push_back(rows.row(batch::kIds, 0)[1]);
    seen.metrics.push_back(result.metrics);
  };
  Registry registry = toy::registry();
  run(graph, placement, registry, options);
  return seen;
}

TEST(ExecutorFlows, ALoopOverServicesIsRefusedBeforeAnyWorkerStarts) {
  graph::Graph graph = toy::flow();
  graph.nodes[1].services = {"policy"};
  graph::validate(graph);
  RunOptions options;
  options.schedule.rows = 4;
  options.next_rows = toy::rows;
  try {
    run(graph, graph::flattening(graph, 1), Registry(), options);  // no worker could be built of an empty registry
    FAIL();
  } catch (const base::InputError& error) {
    EXPECT_STREQ(error.what(),
                 "[node reward.score] expected a call of one model, got a loop over services, which this executor "
                 "lacks; try a function of the environment that calls no service");
  }
}

TEST(ExecutorFlows, FilteredGroupsAreReplaced) {
  graph::Graph graph = toy::filtered_flow();
  Seen seen = run_flow(graph, graph::flattening(graph, 1), "keep");
  EXPECT_EQ(seen.rows, (std::vector<int64_t>{12, 12, 12, 12}));
  double dropped = 0;
  for (const auto& metrics : seen.metrics) dropped += metrics.at("keep/dropped").get<double>();
  EXPECT_GT(dropped, 0);
  Seen delayed = run_flow(graph, graph::flattening(graph, 2), "keep", 4, 0.002);
  EXPECT_EQ(delayed.weights, seen.weights);
}

TEST(ExecutorFlows, StalenessOneGeneratesWithTheWeightsOfOneIterationBefore) {
  graph::Graph graph = toy::flow();
  graph::Placement apart = graph::separation(graph, 2, 1);
  Seen strict = run_flow(graph, apart, "reward.score", 5);
  apart.staleness = 1;
  Seen stale = run_flow(graph, apart, "reward.score", 5, 0.001);
  EXPECT_EQ(strict.weights.at(0), 0);
  EXPECT_GT(strict.weights.at(1), 0);
  EXPECT_EQ(stale.weights.at(0), 0);
  EXPECT_EQ(stale.weights.at(1), 0);  // generated before the first training ended
  EXPECT_GT(stale.weights.at(2), 0);
}

TEST(ExecutorFlows, ASwappedModelIsLoadedBeforeItsUse) {
  toy::moves = 0;
  graph::Graph graph = toy::flow();
  graph::Placement placement = graph::flattening(graph, 1);
  Seen plain = run_flow(graph, placement, "reward.score");
  EXPECT_EQ(toy::moves, 0);
  placement.residency["policy"] = graph::Residency::kSwap;
  EXPECT_EQ(run_flow(graph, placement, "reward.score").weights, plain.weights);
  EXPECT_GE(toy::moves, 2);
}

}  // namespace
}  // namespace collimate::flow
