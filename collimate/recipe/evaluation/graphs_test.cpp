#include "collimate/recipe/evaluation/graphs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "collimate/batch/standard_keys.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/registry.h"

namespace collimate::recipe {
namespace {

using testing::ElementsAre;
using testing::Pair;

using NamedValues = std::vector<std::pair<std::string, double>>;

// Gives what the evaluation says of two completions of 1 and 3 tokens with these rewards, samples of prompts of these
// uids; `more` is YAML of the config.
NamedValues held_out_values(const std::string& recipe, const std::string& more, const std::vector<float>& rewards,
                            const std::vector<int64_t>& prompts = {1, 2}) {
  Config config;
  const std::string text = "recipe: " + recipe + "\ndata: {eval: held_out.jsonl}\n" + more;
  base::apply(base::parse_config(text, "run.yaml"), config);
  const Plan plan = make_plan(config, module_registry());
  Batch rows;
  rows.set_ragged(batch::kIds, std::vector<std::vector<int32_t>>{{3, 4, 1}, {3, 4, 5, 6, 1}});
  rows.set(batch::kPromptTokens, std::vector<int64_t>{2, 2});
  rows.set(batch::kReward, rewards);
  rows.set(batch::kPromptUid, prompts);
  rows.set(rlhf::kAnswer, std::vector<int64_t>{1, 2});
  NamedValues values;
  for (const Measure& measure : plan.evaluations.at(0).measures(rows))
    values.emplace_back(measure.name, estimate(measure).value);
  return values;
}

TEST(Evaluation, AccuracyIsTheShareOfRewardsOfAtLeast1) {
  const std::string rules = "models: {policy: {path: /nowhere}}\nreward: [{rule: exact}]\n";
  for (const char* recipe : {"grpo", "ppo"}) {
    EXPECT_THAT(held_out_values(recipe, rules, {0.5F, 1.F}),
                ElementsAre(Pair("reward/mean", 0.75), Pair("accuracy", 0.5), Pair("response_length/mean", 2.0)))
        << recipe;
  }
}

TEST(Evaluation, ScoresOfARewardModelHaveNoAccuracy) {
  const std::string model = "models: {policy: {path: /nowhere}, reward: {path: /nowhere}}\n";
  EXPECT_THAT(held_out_values("ppo", model, {-3.F, 5.F}),
              ElementsAre(Pair("reward/mean", 1.0), Pair("response_length/mean", 2.0)));
  EXPECT_THAT(held_out_values("ppo", model + "evaluation: {reward: [{rule: exact}]}\n", {0.F, 1.F}),
              ElementsAre(Pair("reward/mean", 0.5), Pair("accuracy", 0.5), Pair("response_length/mean", 2.0)))
      << "the evaluation's own rules judge";
}

TEST(Evaluation, SeveralSamplesOfAPromptAreComparedWithEachOther) {
  const std::string two = "evaluation: {samples_per_prompt: 2, temperature: 1}\n";
  const std::string rules = "models: {policy: {path: /nowhere}}\nreward: [{rule: exact}]\n";
  EXPECT_THAT(held_out_values("grpo", rules + two, {0.F, 1.F}, {1, 1}),
              ElementsAre(Pair("reward/mean", 0.5), Pair("accuracy", 0.5), Pair("response_length/mean", 2.0),
                          Pair("mean@2", 0.5), Pair("best@2", 1.0), Pair("pass@2", 1.0), Pair("maj@2", 0.5)));
  const std::string model = "models: {policy: {path: /nowhere}, reward: {path: /nowhere}}\n";
  EXPECT_THAT(held_out_values("ppo", model + two, {-3.F, 5.F}, {1, 1}),
              ElementsAre(Pair("reward/mean", 1.0), Pair("response_length/mean", 2.0), Pair("mean@2", 1.0),
                          Pair("best@2", 5.0)))
      << "a model's scores have no right ones";
}

// Three steps of two answers; the model is right about the first two, and says no more than a coin of the third.
TEST(Evaluation, StepsAreComparedWithTheirLabels) {
  Config config;
  base::apply(base::parse_config("recipe: process_reward\nmodels: {policy: {path: /nowhere}}\n"
                                 "data: {eval: held_out.jsonl}\ntrain: {samples_per_update: 4}\n",
                                 "run.yaml"),
              config);
  const Plan plan = make_plan(config, module_registry());
  Batch rows;
  rows.set(batch::kUid, std::vector<int64_t>{1, 2});
  rows.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>{{0, 1, 1}, {0, 1}});
  rows.set_ragged(rlhf::kStepRight, std::vector<std::vector<float>>{{0, 1, 0}, {0, 1}});
  rows.set_ragged(rlhf::kStepScores, std::vector<std::vector<float>>{{0, 1, -2}, {0, 0}});
  const std::vector<Measure> measures = plan.evaluations.at(0).measures(rows);
  ASSERT_EQ(measures.size(), 2U);
  EXPECT_EQ(measures[0].name, "accuracy");
  EXPECT_NEAR(estimate(measures[0]).value, 2.0 / 3, 1e-9);
  EXPECT_EQ(measures[1].name, "loss");
  EXPECT_NEAR(estimate(measures[1]).value, (std::log1p(std::exp(-1)) + std::log1p(std::exp(-2)) + std::log(2)) / 3,
              1e-9);
  EXPECT_EQ(plan.evaluations.at(0).row_number->of(rows, 0), -2.0);
}

}  // namespace
}  // namespace collimate::recipe
