#include "collimate/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "collimate/graph/trace.h"
#include "tests/support/base/error_of.h"
#include "tests/support/graph/sample_graphs.h"

namespace collimate::graph {
namespace {

using testing::HasSubstr;

TEST(GraphText, IsTheIdentityBothWays) {
  for (const Graph& graph : {samples::grpo(), samples::grpo(true), samples::ppo()}) {
    const std::string written = text(graph);
    EXPECT_EQ(parse(written), graph);
    EXPECT_EQ(text(parse(written)), written);
  }
}

TEST(GraphText, KeepsParametersControlDependenciesAndServices) {
  Graph graph = samples::grpo();
  graph.nodes[2].after = {"reward"};
  graph.nodes[0].parameters = {{"temperature", 0.5}};
  graph.nodes[0].services = {"trainer"};
  EXPECT_EQ(parse(text(graph)), graph);
}

TEST(GraphText, RefusesOtherVersionsUnknownKeysAndBrokenJson) {
  std::string written = text(samples::grpo());
  EXPECT_THAT(base::message_of([&] { parse(written.substr(0, 40)); }), HasSubstr("[graph] expected well-formed JSON"));
  std::string other = written;
  other.replace(other.find("\"version\": 1"), 12, "\"version\": 7");
  EXPECT_EQ(base::message_of([&] { parse(other); }),
            "[graph.version] expected 1, got 7; try writing the graph again with this release");
  other = written;
  other.replace(other.find("\"links\""), 7, "\"likns\"");
  EXPECT_THAT(base::message_of([&] { parse(other); }), HasSubstr("unknown key 'likns'"));
}

TEST(Trace, NamesNodesAndKeepsTheirOrder) {
  Graph graph = samples::ppo();
  std::vector<std::string> ids;
  for (const Node& node : graph.nodes) ids.push_back(node.id);
  EXPECT_THAT(ids, testing::ElementsAre("policy.generate", "reference.log_probs", "value.values", "reward.score", "gae",
                                        "trainer.train", "value.train"));
  EXPECT_THAT(graph.node(4).inputs,
              testing::ElementsAre("policy.generate", "reference.log_probs", "value.values", "reward.score"));
  EXPECT_EQ(graph.links, (std::vector<WeightLink>{{"trainer", "policy", 1}}));
}

TEST(Trace, TakesSeveralInputsAndOutputsAModelTwiceLoopsAndControlDependencies) {
  FunctionSpec split = samples::host("split", Granularity::kRow, {}, "x");
  ModelHandle splitter("splitter", {split, samples::host("again", Granularity::kRow, {}, "y")});
  ModelHandle environment = host_function(samples::host("game", Granularity::kRow, {}, "turns"));
  ModelHandle policy("policy", {samples::generate()});
  Graph graph = trace(
      [&](Value prompts, Value examples) {
        std::vector<Value> halves = splitter.outputs("split", {"left", "right"}, prompts, examples);
        Value again = splitter("again", halves[1], after(halves[0]), with({{"k", 2}}));
        for (int i = 0; i < 2; ++i) splitter("again", again);
        loop(environment, {&policy})(prompts);
      },
      {{"prompts", {}}, {"examples", {}}});
  ASSERT_EQ(graph.nodes.size(), 5u);
  EXPECT_THAT(graph.node(0).outputs, testing::ElementsAre("splitter.split.left", "splitter.split.right"));
  EXPECT_EQ(graph.node(1).parameters, (nlohmann::json{{"k", 2}}));
  EXPECT_THAT(graph.node(1).after, testing::ElementsAre("splitter.split"));
  EXPECT_EQ(graph.node(3).id, "splitter.again.3");
  EXPECT_THAT(graph.node(4).services, testing::ElementsAre("policy"));
  EXPECT_EQ(parse(text(graph)), graph);
}

TEST(Trace, ACallOutsideAndAnUnknownFunctionAreErrors) {
  ModelHandle policy("policy", {samples::generate()});
  EXPECT_THAT(base::message_of([&] { policy("generate", Value("prompts")); }), HasSubstr("a call inside graph::trace"));
  EXPECT_EQ(base::message_of([&] { trace([&](Value prompts) { policy("sing", prompts); }, samples::prompts()); }),
            "[graph.policy.sing] expected a function of policy out of generate, got 'sing'");
}

TEST(Validate, NamesTheNodeThatShouldHaveMadeAColumn) {
  Graph graph = samples::ppo();
  graph.nodes[5].inputs = {"policy.generate"};
  EXPECT_EQ(
      base::message_of([&] { validate(graph); }),
      "[graph.trainer.train] expected column 'advantages' from its inputs policy.generate, got none of that name; "
      "they carry ids, log_probs, prompt_ids; try giving it the output of node gae");
}

TEST(Validate, NamesTheMakerOfAMistypedColumn) {
  Graph graph = samples::ppo();
  graph.models["gae"].functions[0].makes[0] = "advantages:i64";
  EXPECT_EQ(base::message_of([&] { validate(graph); }),
            "[graph.trainer.train] expected column 'advantages' of type f32, got i64 from node gae");
}

TEST(Validate, FindsCyclesDanglingValuesAndUnknownNames) {
  Graph graph = samples::grpo();
  graph.nodes[0].after = {"reward"};
  EXPECT_THAT(base::message_of([&] { validate(graph); }), HasSubstr("a cycle among or before policy.generate, reward"));
  graph = samples::grpo();
  graph.nodes[1].inputs = {"nothing"};
  EXPECT_EQ(base::message_of([&] { validate(graph); }),
            "[graph.reward.inputs] expected a graph input or a node's output, got 'nothing', which nothing makes");
  graph = samples::grpo();
  graph.nodes[1].inputs.clear();
  EXPECT_EQ(base::message_of([&] { validate(graph); }), "[graph.reward] expected at least one input, got none");
  graph = samples::grpo();
  graph.nodes[1].model = "rewad";
  EXPECT_EQ(base::message_of([&] { validate(graph); }),
            "[graph.reward] expected a model out of advantages, policy, reward, trainer, got 'rewad'");
  graph = samples::grpo();
  graph.nodes[3].function = "trian";
  EXPECT_EQ(base::message_of([&] { validate(graph); }),
            "[graph.trainer.train] expected a function of trainer out of train, got 'trian'; try 'train'");
  graph = samples::grpo();
  graph.links = {{"policy", "trainer", 1}};
  EXPECT_THAT(base::message_of([&] { validate(graph); }), HasSubstr("a source that some node trains, got policy"));
}

TEST(Validate, LoopsOverServicesNameTheirModels) {
  ModelHandle game = host_function(samples::host("game", Granularity::kRow, {}, "turns"));
  ModelHandle policy("policy", {samples::generate()});
  Graph graph = trace([&](Value prompts) { policy("generate", loop(game, {&policy})(prompts)); }, samples::prompts());
  validate(graph);
  EXPECT_EQ(parse(text(graph)), graph);
  graph.nodes[0].services = {"polcy"};
  EXPECT_EQ(base::message_of([&] { validate(graph); }),
            "[graph.game.services] expected a model out of game, policy, got 'polcy'");
}

TEST(FunctionSpecJson, IsTheIdentityAndRefusesUnknownWords) {
  FunctionSpec spec = samples::generate();
  spec.cost = {2, 1, {"ids"}, 0.25};
  spec.dispatch = Dispatch::kWhole;
  nlohmann::json json = spec;
  EXPECT_EQ(function_spec_from_json(json), spec);
  json["kind"] = "dream";
  EXPECT_EQ(base::message_of([&] { function_spec_from_json(json); }),
            "[function generate.kind] expected kind to be one of generate, score, train, host, got 'dream'");
}

}  // namespace
}  // namespace collimate::graph
