#include "collimate/recipe/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/batch/standard_keys.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/registry.h"

namespace collimate::recipe {
namespace {

using testing::ElementsAre;
using testing::Pair;

// Gives what the evaluation says of two completions of 1 and 3 tokens with these rewards; `more` is YAML of the config.
NamedValues held_out_metrics(const std::string& recipe, const std::string& more, const std::vector<float>& rewards) {
  Config config;
  const std::string text = "recipe: " + recipe + "\ndata: {eval: held_out.jsonl}\n" + more;
  base::apply(base::parse_config(text, "run.yaml"), config);
  const Plan plan = make_plan(config, module_registry());
  Batch rows;
  rows.set_ragged(batch::kIds, std::vector<std::vector<int32_t>>{{3, 4, 1}, {3, 4, 5, 6, 1}});
  rows.set(batch::kPromptTokens, std::vector<int64_t>{2, 2});
  rows.set(batch::kReward, rewards);
  return plan.evaluation->metrics(rows);
}

TEST(Evaluation, AccuracyIsTheShareOfRewardsOfAtLeast1) {
  const std::string rules = "models: {policy: {path: /nowhere}}\nreward: [{rule: exact}]\n";
  for (const char* recipe : {"grpo", "ppo"}) {
    EXPECT_THAT(
        held_out_metrics(recipe, rules, {0.5F, 1.F}),
        ElementsAre(Pair("val/reward/mean", 0.75), Pair("val/accuracy", 0.5), Pair("val/response_length/mean", 2.0)))
        << recipe;
  }
}

TEST(Evaluation, ScoresOfARewardModelHaveNoAccuracy) {
  const std::string model = "models: {policy: {path: /nowhere}, reward: {path: /nowhere}}\n";
  EXPECT_THAT(held_out_metrics("ppo", model, {-3.F, 5.F}),
              ElementsAre(Pair("val/reward/mean", 1.0), Pair("val/response_length/mean", 2.0)));
  EXPECT_THAT(
      held_out_metrics("ppo", model + "evaluation: {reward: [{rule: exact}]}\n", {0.F, 1.F}),
      ElementsAre(Pair("val/reward/mean", 0.5), Pair("val/accuracy", 0.5), Pair("val/response_length/mean", 2.0)))
      << "the evaluation's own rules judge";
}

}  // namespace
}  // namespace collimate::recipe
