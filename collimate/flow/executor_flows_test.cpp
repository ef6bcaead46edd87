#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "collimate/base/deadline.h"
#include "collimate/graph/forms.h"
#include "tests/support/base/error_of.h"
#include "tests/support/flow/toy_modules.h"
#include "tests/support/flow/toy_runs.h"
#include "tests/support/watched_messages.h"

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
  const test::WatchedMessages watched(0, delay_seconds);
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
  // No worker could be built of an empty registry.
  EXPECT_EQ(base::message_of([&] { run(graph, graph::flattening(graph, 1), Registry(), options); }),
            "[node reward.score] expected a call of one model, got a loop over services, which this executor lacks; "
            "try a function of the environment that calls no service");
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

// A function drops rows one by one, out of the middle of groups too. The next one gets all that is left of a group in
// one call.
TEST(ExecutorFlows, WhatIsLeftOfAGroupComesInOneCall) {
  const graph::FunctionSpec thin = toy::spec_of("thin", graph::Kind::kHost, {"ids"}, {"score"});
  graph::FunctionSpec judge = toy::spec_of("judge", graph::Kind::kHost, {"score"}, {"reward"});
  judge.granularity = graph::Granularity::kGroup;
  std::mutex mutex;
  std::map<int64_t, std::vector<int64_t>> left, judged;  // by prompt: how many rows of it are in each call
  const auto note = [&](std::map<int64_t, std::vector<int64_t>>& calls, const Batch& rows) {
    const std::lock_guard lock(mutex);
    std::map<int64_t, int64_t> here;
    for (const int64_t prompt : rows.all(batch::kPromptUid)) ++here[prompt];
    for (const auto& [prompt, count] : here) calls[prompt].push_back(count);
  };
  Registry registry = toy::registry();
  registry.add("thin", [&](const nlohmann::json&) {
    auto module = std::make_unique<HostModule>();
    module->add(thin, [&](const Batch& input, const CallInfo&, std::vector<Metric>&) {
      std::vector<int64_t> kept;
      for (int64_t i = 0; i < input.rows(); ++i)
        if (input.get(batch::kUid, i) % 4 != 1) kept.push_back(i);
      Batch made = input.gather(kept);
      made.set(batch::kScore, std::vector<float>(kept.size(), 1.0F));
      if (!kept.empty()) note(left, made);
      return made;
    });
    return module;
  });
  registry.add("judge", [&](const nlohmann::json&) {
    auto module = std::make_unique<HostModule>();
    module->add(judge, [&](const Batch& input, const CallInfo&, std::vector<Metric>&) {
      note(judged, input);
      Batch made(input.rows());
      made.set(batch::kReward, std::vector<float>(static_cast<size_t>(input.rows()), 1.0F));
      return made;
    });
    return module;
  });
  graph::ModelHandle policy("policy", {toy::generate_spec()}), thins("thin", {thin}), judges("judge", {judge}),
      trainer("trainer", {toy::train_spec()});
  const graph::Graph graph = graph::trace(
      [&](graph::Value prompts) {
        trainer.train(judges(thins(policy("generate", prompts))));
        graph::link(trainer, policy);
      },
      {{"prompts", {"uid", "prompt_uid"}}}, "thinned");
  run(graph, graph::flattening(graph, 1), registry, toy::run_options(3));
  EXPECT_EQ(judged.size(), 9U);
  int64_t thinned = 0;
  for (const auto& [prompt, calls] : judged) {
    EXPECT_EQ(calls.size(), 1U) << "prompt " << prompt;
    EXPECT_EQ(calls.front(), std::accumulate(left.at(prompt).begin(), left.at(prompt).end(), int64_t{0})) << prompt;
    thinned += calls.front() > 1 && calls.front() < 4 ? 1 : 0;
  }
  EXPECT_GT(thinned, 0);
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

// A result is taken 0.2 s long, three times before an iteration and once behind the last one.
TEST(ExecutorFlows, AnEvaluationIsNoPartOfTheNextIterationsSeconds) {
  constexpr double kTaken = 0.2;
  double of_iterations = 0, of_evaluations = 0;
  RunOptions options = toy::run_options(3);
  options.schedule.evaluate_first = true;
  options.schedule.evaluate_every = 1;
  options.evaluations = {toy::generating_evaluation()};
  options.evaluations[0].on_result = [&](const IterationResult&) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kTaken));
    of_evaluations += kTaken;
  };
  options.on_iteration = [&](const IterationResult& result) { of_iterations += result.seconds; };
  const graph::Graph graph = toy::flow();
  const double began = base::now_seconds();
  run(graph, graph::flattening(graph, 1), toy::registry(), options);
  EXPECT_GT(of_evaluations, 3.5 * kTaken);
  EXPECT_LE(of_iterations + of_evaluations, base::now_seconds() - began);
}

// The rows that each object of a trainer has been given, by its (dp, tp); one entry per object.
struct PlacedRows {
  std::mutex mutex;
  std::multimap<std::pair<int, int>, std::vector<int64_t>> rows;
};

class PlacedTrainer : public toy::Trainer {
 public:
  explicit PlacedTrainer(PlacedRows& placed) : placed_(placed) {}
  void setup(Context& context) override {
    const comm::Mesh& mesh = context.mesh("train");
    place_ = {mesh.coordinate(context.device, "dp"), mesh.coordinate(context.device, "tp")};
    Trainer::setup(context);
  }
  void train_step(const std::string& function, std::span<const Batch> updates, const CallInfo& info) override {
    {
      const std::lock_guard lock(placed_.mutex);
      for (const Batch& update : updates) placed_.rows.emplace(place_, update.all(batch::kUid));
    }
    Trainer::train_step(function, updates, info);
  }

 private:
  PlacedRows& placed_;
  std::pair<int, int> place_;
};

TEST(ExecutorFlows, AModuleHasOneObjectPerRank) {
  PlacedRows placed;
  Registry registry = toy::registry();
  registry.add("placed", [&](const nlohmann::json&) { return std::make_unique<PlacedTrainer>(placed); });
  RunOptions options = toy::run_options(1);
  options.modules["trainer"] = {"placed", nlohmann::json::object()};
  const graph::Graph graph = toy::flow();
  graph::Placement placement = graph::flattening(graph, 4);
  placement.layouts["trainer"]["train"].dp = 2;
  placement.layouts["trainer"]["train"].tp = 2;
  placement.layouts["policy"]["generate"].tp = 2;
  const int before = toy::trainers_built;
  run(graph, placement, registry, options);
  EXPECT_EQ(toy::trainers_built, before + 4);
  ASSERT_EQ(placed.rows.size(), 4U);
  std::vector<int64_t> all;
  for (int dp = 0; dp < 2; ++dp) {
    ASSERT_EQ(placed.rows.count({dp, 0}), 1U) << dp;
    ASSERT_EQ(placed.rows.count({dp, 1}), 1U) << dp;
    const std::vector<int64_t>& rows = placed.rows.find({dp, 0})->second;
    EXPECT_EQ(placed.rows.find({dp, 1})->second, rows) << dp;
    EXPECT_EQ(rows.size(), 6U) << dp;
    all.insert(all.end(), rows.begin(), rows.end());
  }
  std::vector<int64_t> given = toy::rows(0, 0, 12).all(batch::kUid);
  std::sort(all.begin(), all.end());
  std::sort(given.begin(), given.end());
  EXPECT_EQ(all, given);
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
