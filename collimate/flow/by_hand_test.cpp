#include "collimate/flow/by_hand.h"

#include <gtest/gtest.h>

#include "collimate/flow/host_module.h"
#include "tests/support/flow/toy_runs.h"

namespace collimate::flow {
namespace {

// A policy that draws by numbers of its own, which are not those that the trainer begins with.
class PolicyApart : public toy::Policy {
 public:
  std::unique_ptr<Stream> open(const std::string&, const CallInfo& info) override {
    return std::make_unique<toy::CountingStream>(own_, false, info);
  }
  WeightsPort* weights() override { return &own_port_; }

 private:
  std::shared_ptr<toy::Numbers> own_ = std::make_shared<toy::Numbers>(toy::Numbers{std::vector<float>(4, 100.0F)});
  toy::NumbersPort own_port_{own_};
};

Registry registry_with_policy_apart() {
  Registry registry = toy::registry();
  registry.add("apart", [](const nlohmann::json&) { return std::make_unique<PolicyApart>(); });
  return registry;
}

RunOptions options_of_loop() {
  RunOptions options = toy::run_options(4);
  options.modules["policy"] = {.kind = "apart"};
  return options;
}

std::string drawn(const Batch& rows) {
  std::string text;
  for (int64_t row = 0; row < rows.rows(); ++row)
    text += fmt::format("{}: {} {}; ", rows.get(batch::kUid, row), fmt::join(rows.row(batch::kIds, row), " "),
                        rows.get(batch::kReward, row));
  return text;
}

std::vector<std::string> drawn_by_hand(const graph::Graph& graph) {
  ByHand models(graph, registry_with_policy_apart(), options_of_loop());
  std::vector<std::string> all;
  for (int64_t iteration = 0; iteration < 4; ++iteration) {
    models.begin_iteration(iteration);
    const Batch rows = models.experience(toy::rows(iteration, 0, 12));
    all.push_back(drawn(rows));
    models.train(rows);
  }
  return all;
}

TEST(ByHand, WeightsMoveAsInARun) {
  for (const int64_t every : {1, 2}) {
    graph::Graph graph = toy::flow();
    graph.links.at(0).every = every;
    std::vector<std::string> by_run;
    RunOptions options = options_of_loop();
    options.on_iteration = [&](const IterationResult& result) {
      by_run.push_back(drawn(result.batches.at(graph.nodes.at(1).id)));
    };
    run(graph, graph::flattening(graph, 1), registry_with_policy_apart(), options);
    EXPECT_EQ(drawn_by_hand(graph), by_run) << every;
  }
}

// A flow of two branches, of which one drops the rows whose uids are 1 in fours, and their merge.
struct TwoBranches {
  explicit TwoBranches(bool filter_first) {
    const graph::FunctionSpec thin = toy::spec_of("thin", graph::Kind::kHost, {"ids"}, {"score"});
    registry.add("thin", [thin](const nlohmann::json&) {
      auto module = std::make_unique<HostModule>();
      module->add(thin, [](const Batch& input, const CallInfo&, std::vector<Metric>&) {
        std::vector<int64_t> kept;
        for (int64_t row = 0; row < input.rows(); ++row)
          if (input.get(batch::kUid, row) % 4 != 1) kept.push_back(row);
        Batch made = input.gather(kept);
        made.set(batch::kScore, std::vector<float>(kept.size(), 1.0F));
        return made;
      });
      return module;
    });
    graph::ModelHandle policy("policy", {toy::generate_spec()}), thins("thin", {thin}),
        reward("reward", {toy::score_spec(true)}), trainer("trainer", {toy::train_spec()});
    graph = graph::trace(
        [&](graph::Value prompts) {
          const graph::Value drawn = policy("generate", prompts);
          const graph::Value first = filter_first ? thins(drawn) : reward("score", drawn);
          const graph::Value second = filter_first ? reward("score", drawn) : thins(drawn);
          trainer.train(graph::merge(first, second));
          graph::link(trainer, policy);
        },
        {{"prompts", {"uid", "prompt_uid"}}}, "branches");
  }
  Registry registry = toy::registry();
  graph::Graph graph;
};

TEST(ByHand, RowsThatOneBranchDropsAreGoneOnAll) {
  for (const bool filter_first : {true, false}) {
    const TwoBranches flow(filter_first);
    std::vector<double> by_run;
    RunOptions options = toy::run_options(2);
    options.on_iteration = [&](const IterationResult& result) {
      by_run.push_back(result.metrics.at("train/rows").get<double>());
    };
    run(flow.graph, graph::flattening(flow.graph, 1), flow.registry, options);
    ByHand models(flow.graph, flow.registry, toy::run_options(2));
    for (int64_t iteration = 0; iteration < 2; ++iteration) {
      models.begin_iteration(iteration);
      const Batch rows = models.experience(toy::rows(iteration, 0, 12));
      EXPECT_EQ(rows.rows(), 10);
      for (const int64_t uid : rows.all(batch::kUid)) EXPECT_NE(uid % 4, 1);
      EXPECT_TRUE(rows.has("score") && rows.has("reward") && rows.has("ids"));
      models.train(rows);
      EXPECT_EQ(by_run.at(static_cast<size_t>(iteration)), 10);
    }
  }
}

TEST(ByHand, ANodeMayReadAnyOutputOfAnother) {
  graph::Graph graph = toy::flow();
  const std::vector<std::string> before = drawn_by_hand(graph);
  graph.nodes.at(0).outputs.push_back("second");
  graph.nodes.at(1).inputs = {"second"};
  EXPECT_EQ(drawn_by_hand(graph), before);
}

}  // namespace
}  // namespace collimate::flow
