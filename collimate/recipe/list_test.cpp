#include "collimate/recipe/list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <sstream>

#include "collimate/base/error.h"
#include "collimate/recipe/objective.h"
#include "collimate/recipe/placement.h"
#include "collimate/recipe/prepare.h"
#include "collimate/recipe/registry.h"
#include "tests/support/base/error_of.h"

namespace collimate::recipe {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The page of a recipe, without data or models: `more` is YAML after what every recipe needs.
Config config_of(const std::string& recipe, const std::string& more = "") {
  Config config;
  const bool drawn = std::any_of(recipes().begin(), recipes().end(), [&](const RecipeEntry& entry) {
    return entry.name == recipe && entry.rows == rlhf::RowKind::kPrompt;
  });
  const bool taught = std::any_of(recipes().begin(), recipes().end(), [&](const RecipeEntry& entry) {
    return entry.name == recipe && needs_teacher(entry);
  });
  const std::string text = "recipe: " + recipe + "\nmodels: {policy: {path: /nowhere}" +
                           (taught ? ", teacher: {path: /elsewhere}" : "") + "}\ntrain: {samples_per_update: 4}\n" +
                           (drawn ? "reward: [{rule: exact}]\n" : "") + more;
  base::apply(base::parse_config(text, "run.yaml"), config);
  return config;
}

Plan plan_of(const std::string& recipe, const std::string& more = "") {
  return make_plan(config_of(recipe, more), module_registry());
}

std::string error_of(const std::string& recipe, const std::string& more) {
  return base::message_of([&] { complete_plan(config_of(recipe, more), module_registry()); });
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

// Gives the base of each model that has one.
std::map<std::string, std::string> bases_of(const Plan& plan) {
  std::map<std::string, std::string> bases;
  for (const auto& [model, module] : plan.modules)
    if (module.parameters.contains("base")) bases[model] = module.parameters.at("base");
  return bases;
}

TEST(Recipes, ModelsOfOneDirectoryHaveABaseWhereNotAllIsTrained) {
  const auto bases = [](const std::string& recipe, const std::string& others, int64_t rank = 4) {
    Config config = config_of(recipe, "algorithm: {beta: 0.1}");
    config.models["policy"].lora.rank = rank;
    const auto sections = nlohmann::json::parse(others);
    for (const auto& [name, section] : sections.items()) base::apply(section, "models." + name, config.models[name]);
    return bases_of(make_plan(config, module_registry()));
  };
  const std::string three = "policy+reference+value";
  const std::map<std::string, std::string> all = {
      {"policy", three}, {"policy_trainer", three}, {"reference", three}, {"value", three}};
  EXPECT_EQ(bases("ppo", "{}"), all);
  EXPECT_EQ(bases("ppo", R"({"value": {"path": "/nowhere/"}})").at("policy"), "policy+reference")
      << "a value model that is trained whole";
  EXPECT_TRUE(bases("ppo", "{}", 0).empty()) << "no frozen model is like another";
  EXPECT_TRUE(bases("grpo", R"({"reference": {"path": "/elsewhere"}})").empty());
  EXPECT_TRUE(bases("dpo", R"({"reference": {"path": "/nowhere", "compute": "bfloat16"}})").empty());
  EXPECT_EQ(bases("dpo", R"({"reference": {"path": "/nowhere/."}})").size(), 2U);
  EXPECT_TRUE(bases("sft", "{}").empty());
}

TEST(Recipes, EveryOneOfTheListHasAPage) {
  for (const RecipeEntry& entry : recipes()) {
    const Plan plan = plan_of(entry.name);
    EXPECT_EQ(plan.rows, entry.rows) << entry.name;
    EXPECT_FALSE(plan.graph.nodes.empty()) << entry.name;
    EXPECT_TRUE(plan.modules.contains(plan.trained)) << entry.name;
  }
  EXPECT_THAT(error_of("gpro", ""),
              HasSubstr("one of \"sft\", \"distill\", \"reward\", \"process_reward\", \"dpo\", \"kto\", \"grpo\", "));
}

TEST(Recipes, TheListNamesTheLossesThatPagesTrainBy) {
  for (const RecipeEntry& entry : recipes()) {
    std::set<std::string> rows;
    const Plan plan = plan_of(entry.name);
    for (const std::string& trainer : plan.trainers) rows.insert(plan.modules.at(trainer).parameters.at("loss_rows"));
    EXPECT_EQ(rows, std::set<std::string>(entry.loss_rows.begin(), entry.loss_rows.end())) << entry.name;
  }
  EXPECT_THAT(plan_of("ppo").trainers, ElementsAre("policy_trainer", "value"));
}

std::vector<std::string> learned_by(const std::string& recipe, const std::string& more = "") {
  return objective_lines(objectives(plan_of(recipe, more)));
}

// The page and the loss choose what the config leaves out.
TEST(Recipes, SayWhatTheirModelsLearnBy) {
  EXPECT_THAT(learned_by("sft"), ElementsAre("loss: nll"));
  EXPECT_THAT(learned_by("distill"), ElementsAre("loss: forward_kl"));
  EXPECT_THAT(learned_by("dpo"), ElementsAre("loss: sigmoid, beta 0.1"));
  EXPECT_THAT(learned_by("kto"), ElementsAre("loss: kto, beta 0.1"));
  EXPECT_THAT(learned_by("grpo"), ElementsAre("loss: grpo, advantage group, beta 0"));
  EXPECT_THAT(learned_by("ppo"),
              ElementsAre("loss of policy_trainer: ppo, advantage gae, beta 0", "loss of value: value"));
  EXPECT_THAT(learned_by("grpo", "algorithm: {loss_type: dapo, advantage: rloo, beta: 0.04}\n"),
              ElementsAre("loss: dapo, advantage rloo, beta 0.04"));
  EXPECT_THAT(learned_by("dpo", "algorithm: {loss_type: [sigmoid, hinge], loss_weights: [1, 0.5]}\n"),
              ElementsAre("loss: sigmoid + 0.5 × hinge, beta 0.1"));
}

TEST(Recipes, PagesNameThePhasesOfTheirNodes) {
  const auto phases = [](const std::string& recipe, const std::string& more = "") {
    const Plan plan = plan_of(recipe, more);
    std::vector<std::string> names;
    for (const graph::Node& node : plan.graph.nodes) names.push_back(plan.phases.at(node.id));
    return names;
  };
  EXPECT_THAT(phases("sft"), ElementsAre("update_actor"));
  EXPECT_THAT(phases("distill"), ElementsAre("teacher", "update_actor"));
  EXPECT_THAT(phases("reward"), ElementsAre("update_actor"));
  EXPECT_THAT(phases("dpo"), ElementsAre("ref", "update_actor"));
  EXPECT_THAT(phases("dpo", "algorithm: {loss_type: orpo}"), ElementsAre("update_actor"));
  EXPECT_THAT(phases("kto"), ElementsAre("ref", "ref", "old_log_prob", "adv", "update_actor"));
  EXPECT_THAT(phases("kto", "algorithm: {loss_type: apo_zero_unpaired}"), ElementsAre("ref", "update_actor"));
  EXPECT_THAT(phases("grpo"), ElementsAre("gen", "reward", "adv", "update_actor"));
  EXPECT_THAT(phases("grpo", "algorithm: {beta: 0.04}"), ElementsAre("gen", "reward", "ref", "adv", "update_actor"));
  EXPECT_THAT(phases("grpo", "rollout: {kv_cache_dtype: int8}"),
              ElementsAre("gen", "old_log_prob", "reward", "adv", "update_actor"));
  EXPECT_THAT(phases("grpo", "rollout: {replace_equal_groups: true}"),
              ElementsAre("gen", "reward", "reward", "adv", "update_actor"));
  EXPECT_THAT(phases("ppo"), ElementsAre("gen", "ref", "values", "reward", "adv", "update_actor", "update_critic"));
}

TEST(Recipes, PagesSayWhichRewardsJudgeHeldOutRows) {
  const std::string eval = "data: {eval: held_out.jsonl}\n";
  for (const char* recipe : {"grpo", "ppo"}) {
    const Plan plan = plan_of(recipe, eval);
    EXPECT_THAT(plan.rewards, ElementsAre("judge", "reward")) << recipe;
    EXPECT_EQ(plan.evaluations.at(0).judge, "judge") << recipe;
    EXPECT_THAT(plan_of(recipe).rewards, ElementsAre("reward")) << recipe;
  }
  EXPECT_EQ(plan_of("dpo", eval).evaluations.at(0).judge, "");
  EXPECT_TRUE(plan_of("dpo", eval).rewards.empty());
}

TEST(Recipes, RewardModelsAloneDoNotLearnToStop) {
  for (const RecipeEntry& entry : recipes())
    EXPECT_EQ(plan_of(entry.name).learns_to_stop, !entry.name.ends_with("reward")) << entry.name;
}

// The configs of the repository name keys, recipes, rules and losses that exist, whether or not their data is here.
TEST(Recipes, EveryConfigOfTheRepositoryIsAPlan) {
  std::set<std::string> shown;
  for (const auto& file : std::filesystem::directory_iterator(COLLIMATE_SOURCE_DIR "/configs")) {
    if (file.path().extension() != ".yaml") continue;
    const Config config = load(file.path().string(), {});
    EXPECT_FALSE(complete_plan(config, module_registry()).graph.nodes.empty()) << file.path();
    shown.insert(config.recipe);
  }
  const std::vector<std::string> names = recipe_names();
  EXPECT_EQ(shown, std::set<std::string>(names.begin(), names.end())) << "each recipe has a config";
}

// Lines that give a value: not the headings of sections.
int64_t options_in(const std::string& yaml) {
  std::istringstream lines(yaml);
  int64_t count = 0;
  for (std::string line; std::getline(lines, line);) count += line.ends_with(':') ? 0 : 1;
  return count;
}

// The text that `check` prints and a run keeps is short enough to be read, and reads back as the same config.
TEST(Recipes, AResolvedConfigHasTheOptionsThatAreRead) {
  for (const RecipeEntry& entry : recipes()) {
    const std::string eval = "data: {eval: held_out.jsonl}\n";
    const Config config = config_of(entry.name, eval);
    const std::string text = resolved_text(config, plan_of(entry.name, eval));
    EXPECT_LT(options_in(text), 100) << "an option that few runs set belongs in concerns_few_runs (unread.cpp)\n"
                                     << text;
    EXPECT_LT(options_in(resolved_text(config_of(entry.name), plan_of(entry.name))), 90) << entry.name;
    Config again;
    base::apply(base::parse_config(text, "resolved.yaml"), again);
    EXPECT_EQ(base::config_hash(again), base::config_hash(config)) << entry.name;
  }
  EXPECT_THAT(resolved_text(config_of("grpo"), plan_of("grpo")),
              AllOf(HasSubstr("epsilon: 0.2"), Not(HasSubstr("simpo"))));
}

// An option that another one switches on stands there with it, and one that is set always does.
TEST(Recipes, AResolvedConfigHasWhatIsSwitchedOn) {
  const auto text_of = [](
                           const std::string& recipe, const std::function<void(Config&)>& change = [](Config&) {}) {
    Config config = config_of(recipe);
    change(config);
    return resolved_text(config, plan_of(recipe));
  };
  EXPECT_THAT(text_of("grpo"), AllOf(Not(HasSubstr("alpha")), Not(HasSubstr("lr_minimum_ratio")),
                                     Not(HasSubstr("speculation_tokens")), Not(HasSubstr("train_on"))));
  const auto switch_on = [](Config& config) {
    config.train.lr_schedule = "cosine_with_min";
    config.models["policy"].lora.rank = 8;
  };
  EXPECT_THAT(text_of("grpo", switch_on), AllOf(HasSubstr("lr_minimum_ratio: 0.1"), HasSubstr("alpha: 32")));
  EXPECT_THAT(text_of("sft", [](Config& config) { config.train.lr_minimum_ratio = 0.5; }),
              HasSubstr("lr_minimum_ratio: 0.5"));
  EXPECT_THAT(text_of("sft"), AllOf(Not(HasSubstr("rollout")), HasSubstr("train_on: completion")));
}

TEST(Recipes, TextsBesideSamplesAreOfRecipesThatDrawThem) {
  const std::string texts = "data: {ptx: texts.jsonl, max_tokens: 64}\n";
  for (const char* recipe : {"ppo", "grpo"}) {
    EXPECT_THAT(train_needs(plan_of(recipe, texts)), AllOf(Contains("ptx_ids"), Contains("ptx_trainable")));
    EXPECT_EQ(plan_of(recipe, texts).modules.at("policy_trainer").parameters.at("ptx_tokens"), 64);
    EXPECT_EQ(error_of(recipe, texts), "");
    EXPECT_THAT(train_needs(plan_of(recipe)), Not(Contains("ptx_ids")));
    EXPECT_THAT(error_of(recipe, "algorithm: {}\ndata: {max_tokens: 64}\n"), HasSubstr("data.max_tokens"));
  }
  EXPECT_FALSE(plan_of("ppo", texts).modules.at("value").parameters.contains("ptx_tokens"));
  EXPECT_THAT(error_of("sft", texts), HasSubstr("[data.ptx] expected an option that recipe sft reads"));
  Config config = config_of("ppo");
  config.train.ptx_weight = 2;
  EXPECT_THAT(base::message_of([&] { complete_plan(config, module_registry()); }),
              HasSubstr("[train.ptx_weight] expected nothing without data.ptx, whose texts it weighs, got 2"));
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
              "[algorithm.loss_type] expected one of bradley_terry, divergence_region for scored pairs, got \"dft\"");
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
  EXPECT_EQ(error_of("ppo", "algorithm: {value_clip: null}"), "");
  // Read by another loss on the same rows.
  EXPECT_THAT(error_of("dpo", "algorithm: {simpo_gamma: 0.7}"),
              "[algorithm.simpo_gamma] expected an option that recipe dpo reads (beta, f_alpha_divergence_coef, "
              "f_divergence_type, label_smoothing, ld_alpha, loss_type, loss_weights, use_weighting), got 0.7");
  EXPECT_THAT(error_of("dpo", "algorithm: {loss_type: hinge, label_smoothing: 0.1}"), HasSubstr("label_smoothing]"));
  EXPECT_THAT(error_of("dpo", "algorithm: {loss_type: nca_pair, f_divergence_type: js_divergence}"),
              HasSubstr("f_divergence_type]"));
  EXPECT_EQ(error_of("dpo", "algorithm: {loss_type: [hinge, robust], label_smoothing: 0.1}"), "");
  EXPECT_EQ(error_of("dpo", "algorithm: {loss_type: simpo, simpo_gamma: 0.7}"), "");
  EXPECT_THAT(error_of("grpo", "algorithm: {loss_type: dapo, sapo_temperature_pos: 2}"), HasSubstr("sapo_temperature"));
}

// Every section has some: see also tests/fault/check_test.cpp.
TEST(Recipes, OptionsOfOtherRecipesAreRefused) {
  EXPECT_EQ(error_of("dpo", "data: {train_on: all_tokens}"),
            "[data.train_on] expected completion with recipe dpo, got all_tokens; try recipe: sft");
  EXPECT_EQ(error_of("sft", "data: {train_on: all_tokens, max_tokens: 300}"), "");
  EXPECT_EQ(
      error_of("sft", "rollout: {speculation: ngram}"),
      "[rollout.speculation] expected an option that recipe sft reads, which draws no samples, got \"ngram\"; try "
      "leaving it out, or recipe: grpo or ppo");
  EXPECT_EQ(error_of("ppo", "rollout: {speculation: ngram}"), "");
  EXPECT_EQ(error_of("dpo", "evaluation: {examples: 3}"), "");
  EXPECT_THAT(error_of("dpo", "evaluation: {temperature: 0.5}"), HasSubstr("[evaluation.temperature]"));
  EXPECT_EQ(error_of("sft", "reward: [{rule: exact}]"),
            "[reward] expected nothing with recipe sft, which uses no rewards, got a value; try leaving it out, or "
            "recipe: grpo or ppo");
  EXPECT_EQ(error_of("sft", "data: {eval: held_out.jsonl}\nrun: {patience: 2}\n"), "");
  EXPECT_THAT(error_of("dpo", "data: {eval: pairs.jsonl}\nrun: {patience: 2}\n"), HasSubstr("[run.patience]"));
  EXPECT_EQ(error_of("dpo", "run: {patience: 2}\n"), "") << "idle, which check warns of";
}

TEST(Recipes, KtoNeedsAnotherPromptInItsUpdate) {
  const auto error_of_one = [](const std::string& more) {
    Config config = config_of("kto", more);
    config.train.samples_per_update = 1;
    return base::message_of([&] { complete_plan(config, module_registry()); });
  };
  EXPECT_EQ(error_of_one(""),
            "[train.samples_per_update] expected at least 2, as kto joins each prompt with the answer to another, got "
            "1; try 32, or algorithm.loss_type: apo_zero_unpaired");
  EXPECT_EQ(error_of_one("algorithm: {loss_type: apo_zero_unpaired}\n"), "");
}

TEST(Recipes, ReferencesAreReadWhereRewardsChargeForTheKl) {
  EXPECT_TRUE(plan_of("grpo", "algorithm: {kl_coefficient: 0.05}").graph.models.contains("reference"));
  EXPECT_FALSE(plan_of("grpo", "algorithm: {advantage: reinforce_plus_plus}").graph.models.contains("reference"));
  EXPECT_THAT(error_of("grpo", "algorithm: {kl_target: 0.1}"),
              "[algorithm.kl_coefficient] expected above 0 where kl_target moves it, got 0; try "
              "algorithm.kl_coefficient: 0.05");
  EXPECT_THAT(error_of("grpo", "algorithm: {advantage: gdpo, reward_clip: 1}"), HasSubstr("reward_clip]"));
  EXPECT_EQ(error_of("grpo", "algorithm: {overlong_buffer_tokens: 20}\nrollout: {completion_tokens: 10}\n"),
            "[algorithm.overlong_buffer_tokens] expected at most the 10 of rollout.completion_tokens, got 20; try a "
            "fifth of them");
}

TEST(Recipes, OnlyGroupsThatAreComparedAreReplaced) {
  EXPECT_EQ(error_of("ppo", "rollout: {replace_equal_groups: true}\n"),
            "[rollout.replace_equal_groups] expected false with recipe ppo, which does not compare the samples of a "
            "prompt, got true; try recipe: grpo");
  EXPECT_THAT(error_of("grpo", "rollout: {replace_equal_groups: true, samples_per_prompt: 1}\n"),
              HasSubstr("[rollout.replace_equal_groups] expected false with one sample of a prompt"));
}

TEST(Recipes, RemaxHasAGreedySampleOfEachPrompt) {
  EXPECT_THAT(
      error_of("grpo", "algorithm: {advantage: remax}\nrollout: {samples_per_prompt: 1}"),
      HasSubstr("[rollout.samples_per_prompt] expected at least 2, as the last sample of a prompt is the greedy "
                "one with advantage remax, got 1"));
  const std::string more =
      "algorithm: {advantage: remax}\nrollout: {prompts_per_iteration: 4, samples_per_prompt: 3}\n";
  const Config config = config_of("grpo", more);
  const Plan plan = make_plan(config, module_registry());
  EXPECT_TRUE(plan.greedy_baseline);
  EXPECT_EQ(updates_per_iteration(config, plan), 2) << "8 rows are trained, of 12";
  const nlohmann::json& trainer = plan.modules.at("policy_trainer").parameters;
  EXPECT_EQ(trainer.at("updates_per_epoch"), 2);
  EXPECT_EQ(trainer.at("total_updates"), 2 * config.run.iterations);
  EXPECT_FALSE(plan_of("grpo", "algorithm: {advantage: reinforce_plus_plus}").compares_samples);
}

TEST(Recipes, PairsAreNotDivided) {
  for (const std::string recipe : {"dpo", "reward"}) {
    Config config = config_of(recipe);
    config.train.samples_per_update = 3;
    EXPECT_EQ(base::message_of([&] { complete_plan(config, module_registry()); }),
              "[train.samples_per_update] expected a multiple of 2, as a pair has 2 rows, got 3; try 4");
  }
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
