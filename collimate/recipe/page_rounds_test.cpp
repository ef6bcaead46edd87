#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "collimate/recipe/arithmetic.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/placement.h"
#include "collimate/recipe/prepare.h"
#include "collimate/recipe/registry.h"
#include "tests/support/base/error_of.h"

// Pages whose samples are drawn over several iterations (rollout.round_shares).
namespace collimate::recipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A config whose section `rollout` has two rounds and `rollout` beside them.
Config config_in_rounds(const std::string& recipe, const std::string& rollout = "", const std::string& more = "") {
  Config config;
  base::apply(base::parse_config("recipe: " + recipe +
                                     "\nmodels: {policy: {path: /nowhere}}\nreward: [{rule: exact}]\nrollout: "
                                     "{round_shares: [0.25, 0.75]" +
                                     rollout + "}\n" + more,
                                 "run.yaml"),
              config);
  return config;
}

std::string error_in_rounds(const std::string& recipe, const std::string& rollout, const std::string& more = "") {
  return base::message_of([&] { complete_plan(config_in_rounds(recipe, rollout, more), module_registry()); });
}

TEST(PageRounds, SamplesAreHeldBackBehindGeneration) {
  for (const char* recipe : {"grpo", "ppo"}) {
    const Plan plan = complete_plan(config_in_rounds(recipe, ", round_min_samples: 3"), module_registry());
    EXPECT_TRUE(plan.draws_in_rounds);
    EXPECT_EQ(plan.modules.at("finished_samples").parameters.at("min_samples"), 3);
    EXPECT_EQ(plan.graph.nodes.at(1).id, "finished_samples.keep") << recipe;
    EXPECT_EQ(plan.phases.at("finished_samples.keep"), "rounds");
    for (const char* column : {"round", "trained_before", "log_probs", "weights_version", "finish"})
      EXPECT_EQ(std::ranges::count(plan.graph.inputs.at(0).columns, column, &graph::Column::name), 1) << column;
  }
  const Config whole = [] {
    Config config = config_in_rounds("grpo");
    config.rollout.round_shares = {};
    return config;
  }();
  const Plan plan = complete_plan(whole, module_registry());
  EXPECT_FALSE(plan.draws_in_rounds);
  EXPECT_FALSE(plan.modules.contains("finished_samples"));
}

TEST(PageRounds, SharesThatDoNotFitAreRefused) {
  EXPECT_EQ(error_in_rounds("grpo", ""), "");
  EXPECT_THAT(error_in_rounds("grpo", ", completion_tokens: 1"),
              HasSubstr("[rollout.round_shares] expected shares of "));
  EXPECT_THAT(error_in_rounds("grpo", ", kv_cache_dtype: int8"),
              HasSubstr("[rollout.round_shares] expected nothing beside a rollout.kv_cache_dtype that rounds, as old "
                        "log-probs are then computed again, by one version of the weights, got [0.25,0.75]; try "
                        "rollout.kv_cache_dtype: auto"));
  EXPECT_THAT(error_in_rounds("grpo", ", replace_equal_groups: true"),
              HasSubstr("expected nothing beside rollout.replace_equal_groups"));
  EXPECT_THAT(error_in_rounds("grpo", "", "train: {router_replay: rollout}\n"),
              HasSubstr("expected nothing beside train.router_replay: rollout"));
  EXPECT_THAT(error_in_rounds("grpo", "", "train: {samples_per_update: 4, lr_schedule: cosine}\n"),
              HasSubstr("[train.samples_per_update] expected 0 beside rollout.round_shares with lr_schedule cosine"));
  EXPECT_EQ(error_in_rounds("grpo", "", "train: {samples_per_update: 4}\n"), "");
  Config turns = config_in_rounds("grpo");
  turns.reward = nlohmann::json::parse(R"([{"gym": "game.py:Game"}])");
  EXPECT_THAT(base::message_of([&] { complete_plan(turns, module_registry()); }),
              HasSubstr("[rollout.round_shares] expected nothing beside reward.gym"));
  Config sft = config_in_rounds("sft");
  sft.reward = nullptr;
  EXPECT_THAT(base::message_of([&] { complete_plan(sft, module_registry()); }),
              HasSubstr("[rollout.round_shares] expected an option that recipe sft reads"));
}

TEST(PageRounds, AMinimumOfSamplesFitsTheGroup) {
  EXPECT_EQ(error_in_rounds("grpo", ", samples_per_prompt: 4, round_min_samples: 4"), "");
  EXPECT_EQ(error_in_rounds("grpo", ", samples_per_prompt: 4, round_min_samples: 5"),
            "[rollout.round_min_samples] expected at most the 4 of rollout.samples_per_prompt, got 5; try 0, which is "
            "all");
  EXPECT_THAT(error_in_rounds("grpo", ", round_min_samples: 1"),
              HasSubstr("[rollout.round_min_samples] expected 2 or more, as advantages compare"));
  EXPECT_EQ(error_in_rounds("ppo", ", round_min_samples: 1"), "");
  EXPECT_THAT(error_in_rounds("grpo", ", round_min_samples: 2", "algorithm: {advantage: remax}\n"),
              HasSubstr("[rollout.round_min_samples] expected 0, as the greedy sample"));
  EXPECT_EQ(error_in_rounds("grpo", "", "algorithm: {advantage: remax}\n"), "");
}

TEST(PageRounds, GenerationAheadOfTrainingIsRefused) {
  Config config = config_in_rounds("grpo");
  Plan plan = complete_plan(config, module_registry());
  graph::Placement placement = graph::flattening(plan.graph, 2);
  placement.staleness = 1;
  config.placement = graph::to_json(placement);
  EXPECT_THAT(
      base::message_of([&] { make_placement(config, plan); }),
      HasSubstr("[placement.staleness] expected 0 beside rollout.round_shares, as an iteration goes on with what "
                "the one before has left, got 1; try one of the two"));
}

TEST(PageRounds, TheArithmeticSaysWhatRoundsAre) {
  Config config = config_in_rounds("grpo", ", completion_tokens: 100");
  config.train.learning_rate = 1e-6;
  const Plan plan = complete_plan(config, module_registry());
  EXPECT_THAT(arithmetic_lines(batch_arithmetic(config, plan, 100, 10, 10), config),
              testing::Contains(testing::StartsWith("rounds: a sample has at most 25, 100 tokens after its first, ")));
}

}  // namespace
}  // namespace collimate::recipe
