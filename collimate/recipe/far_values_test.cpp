#include "collimate/recipe/far_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collimate::recipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

shape::ModelShape wide(int64_t width) {
  shape::ModelShape shape;
  shape.hidden = width;
  shape.max_positions = 512;
  return shape;
}

std::vector<std::string> found(const std::string& recipe, const std::vector<std::string>& sets, int64_t width = 1024) {
  nlohmann::json values = {
      {"recipe", recipe}, {"models", {{"policy", {{"path", "tiny"}}}}}, {"data", {{"train", "a.jsonl"}}}};
  if (recipe == "grpo" || recipe == "ppo") values["reward"] = {{{"rule", "exact"}}};
  return far_values(load_values(values, sets), wide(width));
}

std::vector<std::string> of_rate(const std::string& recipe, const std::string& rate, bool adapters = false) {
  std::vector<std::string> sets = {"train.learning_rate=" + rate};
  if (adapters) sets.emplace_back("models.policy.lora.rank=8");
  return found(recipe, sets);
}

TEST(FarValues, ALearningRateIsFarAboveWhatTrains) {
  for (const char* recipe : {"sft", "distill", "reward", "process_reward", "dpo", "kto", "grpo", "ppo"})
    for (const char* rate : {"1", "0.1"}) {
      const auto said = of_rate(recipe, rate);
      ASSERT_EQ(said.size(), 1U) << recipe << " " << rate;
      EXPECT_THAT(said[0], HasSubstr("[train.learning_rate] expected at most about "));
    }
  EXPECT_THAT(
      of_rate("sft", "1").at(0),
      testing::StrEq("[train.learning_rate] expected at most about 0.0039 for recipe sft and a model of width "
                     "1024, got 1: an update of AdamW moves a weight by about as much (Kingma and Ba 2015), and "
                     "a layer of the model adds up 1024 of these moves (Yang et al. 2022), so that the run will "
                     "probably diverge; try 2e-05, the recipe's own"));
  EXPECT_THAT(of_rate("grpo", "0.1", true).at(0), HasSubstr("recipe grpo with LoRA and a model"));
  EXPECT_THAT(of_rate("grpo", "0.1", true).at(0), HasSubstr("; try 1e-05, the recipe's own"));
}

// By recipe, with adapters, and by width.
TEST(FarValues, RatesThatPeopleUseAreNotFar) {
  for (const char* recipe : {"sft", "distill", "reward", "process_reward", "dpo", "kto", "grpo", "ppo"}) {
    EXPECT_THAT(found(recipe, {}), IsEmpty()) << recipe;
    EXPECT_THAT(of_rate(recipe, "0"), IsEmpty()) << "a control";
    EXPECT_THAT(of_rate(recipe, "5e-4"), IsEmpty()) << recipe;
    EXPECT_THAT(of_rate(recipe, "5e-3", true), IsEmpty()) << recipe;
  }
  EXPECT_EQ(of_rate("grpo", "2e-3").size(), 1U);
  EXPECT_THAT(of_rate("sft", "2e-3"), IsEmpty());
  EXPECT_THAT(found("grpo", {"train.learning_rate=1e-2"}, 64), IsEmpty()) << "a small model";
  EXPECT_EQ(found("sft", {"train.learning_rate=1e-2"}, 4096).size(), 1U);
}

// A value model begins new, however wide the policy is and whether that trains adapters.
TEST(FarValues, TheRateOfAValueModelIsJudgedByItsOwnWidth) {
  const auto said = [](const std::string& rate) {
    const shape::ModelShape value = wide(64);
    nlohmann::json values = {
        {"recipe", "ppo"},
        {"models", {{"policy", {{"path", "tiny"}, {"lora", {{"rank", 8}}}}}, {"value", {{"path", "small"}}}}},
        {"data", {{"train", "a.jsonl"}}},
        {"reward", {{{"rule", "exact"}}}}};
    return far_values(load_values(values, {"train.value_learning_rate=" + rate}), wide(4096), &value);
  };
  EXPECT_THAT(said("1e-2"), IsEmpty());
  EXPECT_THAT(said("1").at(0), HasSubstr("[train.value_learning_rate] expected at most about 0.062 for recipe ppo and "
                                         "a value model of width 64, got 1: "));
  EXPECT_THAT(said("1").at(0), HasSubstr("; try 1e-05, as verl has it"));
  EXPECT_THAT(said("1e-9").at(0), HasSubstr("[train.value_learning_rate] expected at least about 1e-08 for recipe"));
}

TEST(FarValues, ALearningRateThatChangesNothing) {
  EXPECT_THAT(
      of_rate("sft", "1e-9"),
      ElementsAre("[train.learning_rate] expected at least about 2e-08 for recipe sft and a model of width 1024, "
                  "got 1e-09: updates of that size hardly change the model; try 2e-05, the recipe's own"));
}

TEST(FarValues, LimitsBeyondTheModelsPositionsSayWhichWins) {
  EXPECT_THAT(found("sft", {"data.max_tokens=4096"}),
              ElementsAre("[data.max_tokens] expected at most the 512 positions of tiny, got 4096: the model's number "
                          "wins, and a longer row ends the run before it begins; try data.max_tokens: 512"));
  EXPECT_THAT(found("sft", {"data.max_tokens=512"}), IsEmpty());
  EXPECT_THAT(found("grpo", {"rollout.prompt_tokens=500", "rollout.completion_tokens=112"}),
              ElementsAre("[rollout.prompt_tokens] expected at most 400, what rollout.completion_tokens: 112 leaves of "
                          "the 512 positions of tiny, got 500: the model's number wins, and a longer prompt ends the "
                          "run before it begins; try rollout.prompt_tokens: 400"));
  EXPECT_THAT(found("grpo", {"rollout.completion_tokens=112"}), IsEmpty()) << "a default is no wish";
}

}  // namespace
}  // namespace collimate::recipe
