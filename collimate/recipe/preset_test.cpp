#include "collimate/recipe/preset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "collimate/recipe/config.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/prepare.h"
#include "collimate/recipe/registry.h"
#include "tests/support/base/error_of.h"

namespace collimate::recipe {
namespace {

using testing::HasSubstr;

// A config of the preset, with `more` beside it.
Config config_of_preset(const std::string& preset, nlohmann::json more = nlohmann::json::object()) {
  nlohmann::json values = {{"preset", preset}, {"models", {{"policy", {{"path", "/tmp"}}}}}};
  const auto known = std::ranges::find(presets(), preset, &Preset::name);
  if (known == presets().end() || find_recipe(known->recipe).rows == rlhf::RowKind::kPrompt) {
    values["reward"] = {{{"rule", "exact"}}};
    values["rollout"] = {{"prompts_per_iteration", 4}, {"samples_per_prompt", 4}};
  }
  values.merge_patch(more);
  return load_values(values, {});
}

std::string error_with(const std::string& preset, const nlohmann::json& more) {
  return base::message_of([&] { complete_plan(config_of_preset(preset, more), module_registry()); });
}

// Each preset's recipe reads every key of it, so that none does nothing.
TEST(Presets, EachIsAPlanWhoseRecipeReadsAllOfIt) {
  for (const Preset& preset : presets()) {
    const Config config = config_of_preset(preset.name);
    EXPECT_EQ(config.recipe.get(), preset.recipe) << preset.name;
    EXPECT_NO_THROW(complete_plan(config, module_registry())) << preset.name;
    EXPECT_THAT(presets_text(),
                HasSubstr("\npreset: " + preset.name + "  # recipe " + preset.recipe + ": " + preset.source + "\n"));
  }
}

// The constants that ../shared/reference/trainers.md (sections 2.1, 2.2, 2.8, 2.9), deepspeed_chat.md (1.5) and
// chatlearn.md (7) name as traps.
TEST(Presets, HaveTheTrapsOfTheirPrograms) {
  const auto algorithm = [](const std::string& preset) {
    return base::to_json(config_of_preset(preset).algorithm.section_value());
  };
  const auto has = [&](const std::string& preset, const nlohmann::json& wanted) {
    const nlohmann::json values = algorithm(preset);
    for (const auto& [key, value] : wanted.items()) EXPECT_EQ(values.at(key), value) << preset << " " << key;
  };
  has("trl-grpo", {{"loss_type", {"dapo"}}, {"advantage_epsilon", 1e-4}, {"token_normalizer", "iteration"}});
  has("trl-rloo", {{"kl_coefficient", 0.05}, {"importance_sampling_level", "sequence_sum"}, {"advantage", "rloo"}});
  has("verl-grpo", {{"delta", 3.0},
                    {"log_ratio_min", -20.0},
                    {"log_ratio_max", 20.0},
                    {"kl_loss_limit", 10.0},
                    {"advantage_epsilon", 1e-6},
                    {"lone_samples", "reward"}});
  has("verl-ppo", {{"lambda", 1.0}, {"kl_coefficient", 0.0}, {"value_clip", 0.5}, {"delta", 3.0}});
  has("openrlhf-ppo", {{"kl_coefficient", 0.01}, {"reward_clip", 10.0}, {"whiten_variance", "biased"}});
  has("deepspeed-chat-ppo", {{"kl_coefficient", 0.1}, {"reward_clip", 5.0}, {"whiten_advantages", false}});
  has("deepspeed-chat-reward", {{"loss_type", {"divergence_region"}}});
  has("chatlearn-grpo", {{"log_ratio_max", 10.0}, {"token_loss_limit", 3.0}, {"advantage_epsilon", 1e-5}});
  has("dapo", {{"epsilon_high", 0.28}, {"loss_type", {"dapo"}}});
  EXPECT_EQ(config_of_preset("verl-ppo").train.value_learning_rate.get(), 1e-5);
  EXPECT_EQ(config_of_preset("deepspeed-chat-ppo").train.adam_beta2.get(), 0.95);
  EXPECT_TRUE(config_of_preset("dapo").rollout.replace_equal_groups.get());
}

TEST(Presets, AKeyOfTheConfigHasTheLastWord) {
  const Config config = config_of_preset("verl-grpo", {{"algorithm", {{"delta", 5}, {"epsilon", 0.3}}}});
  EXPECT_EQ(config.algorithm.delta->value(), 5.0);
  EXPECT_EQ(config.algorithm.epsilon.get(), 0.3);
  EXPECT_EQ(config.algorithm.advantage_epsilon.get(), 1e-6);
  EXPECT_EQ(config.rollout.samples_per_prompt.get(), 4);
}

TEST(Presets, ErrorsNameWhatIsThere) {
  EXPECT_THAT(base::message_of([] { config_of_preset("verl-grop"); }), HasSubstr("verl-grpo"));
  EXPECT_EQ(base::message_of([] {
              config_of_preset("verl-grpo", {{"recipe", "ppo"}});
            }),
            "[recipe] expected grpo with preset verl-grpo, got ppo; try another preset, or none");
  EXPECT_THAT(error_with("verl-grpo", {{"algorithm", {{"sapo_temperature_pos", 2}}}}), HasSubstr("[algorithm.sapo"));
}

// A config that is written out says all of it, so that it stays what it is where a preset's name is gone.
TEST(Presets, AResolvedConfigHasTheValues) {
  const Config config = config_of_preset("verl-grpo");
  const std::string text = resolved_text(config, make_plan(config, module_registry()));
  for (const char* line : {"delta: 3", "log_ratio_max: 20", "lone_samples: reward"}) EXPECT_THAT(text, HasSubstr(line));
}

}  // namespace
}  // namespace collimate::recipe
