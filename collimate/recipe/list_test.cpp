#include "collimate/recipe/list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "collimate/base/error.h"
#include "collimate/recipe/prepare.h"

namespace collimate::recipe {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// The page of a recipe, without data or models: `more` is YAML after what every recipe needs.
Config config_of(const std::string& recipe, const std::string& more = "") {
  Config config;
  const std::string text = "recipe: " + recipe +
                           "\nmodels: {policy: {path: /nowhere}}\nreward: [{rule: exact}]\n"
                           "train: {samples_per_update: 4}\n" +
                           more;
  base::apply(base::parse_config(text, "run.yaml"), config);
  return config;
}

Plan plan_of(const std::string& recipe, const std::string& more = "") {
  return make_plan(config_of(recipe, more), module_registry());
}

std::string error_of(const std::string& recipe, const std::string& more) {
  try {
    plan_of(recipe, more);
  } catch (const base::InputError& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> train_needs(const Plan& plan) {
  for (const graph::FunctionSpec& function : plan.graph.models.at(plan.trained).functions)
    if (function.name == "train") {
      std::vector<std::string> names;
      for (const graph::Column& column : function.needs) names.push_back(column.name);
      return names;
    }
  return {};
}

TEST(Recipes, EveryOneOfTheListHasAPage) {
  for (const RecipeEntry& entry : recipes()) {
    const Plan plan = plan_of(entry.name);
    EXPECT_EQ(plan.rows, entry.rows) << entry.name;
    EXPECT_FALSE(plan.graph.nodes.empty()) << entry.name;
    EXPECT_TRUE(plan.modules.contains(plan.trained)) << entry.name;
  }
  EXPECT_THAT(error_of("gpro", ""), HasSubstr("one of \"sft\", \"reward\", \"dpo\", \"grpo\", \"ppo\""));
}

// Those of the repository name keys, recipes, rules and losses that exist, whether or not their data is here.
TEST(Recipes, EveryConfigOfTheRepositoryIsAPlan) {
  int configs = 0;
  for (const auto& file : std::filesystem::directory_iterator(COLLIMATE_SOURCE_DIR "/configs")) {
    if (file.path().extension() != ".yaml") continue;
    const Config config = load(file.path().string(), {});
    EXPECT_FALSE(complete_plan(config, module_registry()).graph.nodes.empty()) << file.path();
    ++configs;
  }
  EXPECT_GE(configs, 5);
}

// Lines that give a value: not the headings of sections.
int64_t options_in(const std::string& yaml) {
  std::istringstream lines(yaml);
  int64_t count = 0;
  for (std::string line; std::getline(lines, line);) count += line.ends_with(':') ? 0 : 1;
  return count;
}

// What `check` prints and a run keeps is short enough to be read, and reads back as the same config.
TEST(Recipes, AResolvedConfigHasTheOptionsThatAreRead) {
  for (const RecipeEntry& entry : recipes()) {
    const Config config = config_of(entry.name);
    const std::string text = resolved_text(config, plan_of(entry.name));
    EXPECT_LT(options_in(text), 100) << text;
    Config again;
    base::apply(base::parse_config(text, "resolved.yaml"), again);
    EXPECT_EQ(base::config_hash(again), base::config_hash(config)) << entry.name;
  }
  EXPECT_THAT(resolved_text(config_of("grpo"), plan_of("grpo")),
              AllOf(HasSubstr("epsilon: 0.2"), Not(HasSubstr("simpo"))));
}

TEST(Recipes, PpoAveragesOverTokensAndMayHaveAKlInTheLoss) {
  EXPECT_EQ(plan_of("ppo").modules.at("policy_trainer").parameters.at("default_loss"), "ppo");
  EXPECT_THAT(train_needs(plan_of("ppo")), Not(Contains("reference_log_probs")));
  EXPECT_THAT(train_needs(plan_of("ppo", "algorithm: {beta: 0.1}")), Contains("reference_log_probs"));
}

TEST(Recipes, ALossWithoutAReferenceHasNone) {
  EXPECT_TRUE(plan_of("dpo").graph.models.contains("reference"));
  EXPECT_FALSE(plan_of("dpo", "algorithm: {loss_type: simpo, beta: 2}").graph.models.contains("reference"));
  EXPECT_FALSE(plan_of("grpo").graph.models.contains("reference"));
  EXPECT_TRUE(plan_of("grpo", "algorithm: {beta: 0.04}").graph.models.contains("reference"));
  const Plan orpo = plan_of("dpo", "algorithm: {loss_type: orpo}");
  EXPECT_TRUE(orpo.prompt_is_trained);
  EXPECT_THAT(train_needs(orpo), Contains("completion"));
}

TEST(Recipes, LossAndAdvantageAreThoseOfTheConfig) {
  EXPECT_EQ(plan_of("grpo").modules.at("advantages").kind, "advantages.group");
  EXPECT_EQ(plan_of("grpo", "algorithm: {advantage: rloo}").modules.at("advantages").kind, "advantages.rloo");
  EXPECT_NO_THROW(plan_of("sft", "algorithm: {loss_type: dft}"));
  EXPECT_NO_THROW(plan_of("dpo", "algorithm: {loss_type: [sigmoid, sft], loss_weights: [1, 0.5]}"));
  EXPECT_THAT(error_of("reward", "algorithm: {loss_type: dft}"),
              "[algorithm.loss_type] expected one of bradley_terry for scored pairs, got \"dft\"");
  EXPECT_THAT(error_of("ppo", "algorithm: {advantage: rloo}"),
              "[algorithm.advantage] expected one of gae with this recipe, got \"rloo\"");
  EXPECT_THAT(error_of("grpo", "algorithm: {loss_type: dapoo}"), HasSubstr("dapo"));
}

TEST(Recipes, OptionsThatNothingReadsAreRefused) {
  EXPECT_THAT(error_of("grpo", "algorithm: {gamma: 0.9}"),
              HasSubstr("[algorithm.gamma] expected an option that recipe grpo reads (advantage, "));
  EXPECT_THAT(error_of("sft", "algorithm: {beta: 0.1}"), HasSubstr("recipe sft reads (loss_type, loss_weights)"));
  EXPECT_THAT(error_of("grpo", "algorithm: {advantage: rloo, scale_rewards: batch}"),
              HasSubstr("[algorithm.scale_rewards]"));
  EXPECT_EQ(error_of("ppo", "algorithm: {shuffle_rewards: true, gamma: 0.9, value_clip: 0}"), "");
  // Read by another loss on the same rows.
  EXPECT_THAT(error_of("dpo", "algorithm: {simpo_gamma: 0.7}"),
              "[algorithm.simpo_gamma] expected an option that recipe dpo reads (beta, f_alpha_divergence_coef, "
              "f_divergence_type, label_smoothing, ld_alpha, loss_type, loss_weights), got 0.7");
  EXPECT_THAT(error_of("dpo", "algorithm: {loss_type: hinge, label_smoothing: 0.1}"), HasSubstr("label_smoothing]"));
  EXPECT_THAT(error_of("dpo", "algorithm: {loss_type: nca_pair, f_divergence_type: js_divergence}"),
              HasSubstr("f_divergence_type]"));
  EXPECT_EQ(error_of("dpo", "algorithm: {loss_type: [hinge, robust], label_smoothing: 0.1}"), "");
  EXPECT_EQ(error_of("dpo", "algorithm: {loss_type: simpo, simpo_gamma: 0.7}"), "");
  EXPECT_THAT(error_of("grpo", "algorithm: {loss_type: dapo, sapo_temperature_pos: 2}"), HasSubstr("sapo_temperature"));
}

TEST(Recipes, AnExplicitZeroIsNotTheDefault) {
  EXPECT_THAT(error_of("dpo", "algorithm: {beta: 0}"), "[algorithm.beta] expected above 0 for sigmoid, got 0");
  EXPECT_EQ(error_of("grpo", "algorithm: {beta: 0}"), "");
  EXPECT_THAT(error_of("dpo", "algorithm: {loss_type: robust, label_smoothing: 0.5}"), HasSubstr("below 0.5"));
  EXPECT_THAT(error_of("grpo", "rollout: {top_p: 0}"), HasSubstr("rollout.top_p to be above 0"));
  EXPECT_THAT(error_of("grpo", "evaluation: {top_p: 0}"), HasSubstr("evaluation.top_p to be above 0"));
}

// A plan for three devices may use two of them.
TEST(Recipes, APlacementMayLeaveDevicesUnused) {
  const auto error = [](int64_t devices, int placed) -> std::string {
    Config config = config_of("grpo");
    Plan plan = complete_plan(config, module_registry());
    config.devices = devices;
    config.placement = graph::to_json(graph::flattening(plan.graph, placed));
    try {
      EXPECT_EQ(make_placement(config, plan).devices, placed);
    } catch (const base::InputError& refused) {
      return refused.what();
    }
    return "";
  };
  EXPECT_EQ(error(3, 2), "");
  EXPECT_EQ(error(2, 2), "");
  EXPECT_THAT(error(2, 3), HasSubstr("[devices] expected at least the 3 of the placement, got 2"));
}

}  // namespace
}  // namespace collimate::recipe
