#include "collimate/recipe/prepare.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "collimate/base/config_text.h"
#include "collimate/base/error.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/cpu.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/unread.h"

namespace collimate::recipe {

namespace {

// The remedy for what only recipes that draw samples read.
std::string or_another_recipe() {
  std::vector<std::string> names;
  for (const RecipeEntry& entry : recipes())
    if (entry.rows == rlhf::RowKind::kPrompt) names.push_back(entry.name);
  return fmt::format("leaving it out, or recipe: {}", fmt::join(names, " or "));
}

// What only both of its options say to be wrong.
void check_sampling(const Config& config, const Plan& plan) {
  const int64_t completion = config.rollout.completion_tokens;
  if (plan.rows == rlhf::RowKind::kPrompt) config.rollout.params(completion);
  if (plan.evaluation && plan.evaluation->rows == rlhf::RowKind::kPrompt) config.evaluation.params(completion);
}

void check_rows(const Config& config, const Plan& plan) {
  if (config.data.trained_tokens() != text::TrainOn::kCompletion && plan.rows != rlhf::RowKind::kDemonstration)
    throw base::InputError(base::expectation("data.train_on", "completion with recipe " + config.recipe.get(),
                                             config.data.train_on, "recipe: sft"));
}

void check_rewards_are_read(const Config& config, const Plan& plan) {
  if (plan.rows == rlhf::RowKind::kPrompt) return;
  const std::string none = fmt::format("nothing with recipe {}, which asks no rewards", config.recipe.get());
  const std::string remedy = or_another_recipe();
  if (!config.reward->is_null()) throw base::InputError(base::expectation("reward", none, "a value", remedy));
  if (!config.evaluation.reward->is_null())
    throw base::InputError(base::expectation("evaluation.reward", none, "a value", remedy));
}

void check_section_is_read(const std::string& recipe, const std::string& section, const base::Section& given,
                           const base::Section& standard, const std::set<std::string>& read) {
  const nlohmann::json set = set_options(given, standard);
  for (const auto& [name, value] : set.items())
    if (!read.contains(name))
      refuse_unread(section + "." + name, recipe, ", which draws no samples", value, or_another_recipe());
}

void check_sampling_is_read(const Config& config, const Plan& plan) {
  if (plan.rows == rlhf::RowKind::kPrompt) return;
  check_section_is_read(config.recipe, "rollout", config.rollout, rlhf::RolloutOptions(), {});
  check_section_is_read(config.recipe, "evaluation", config.evaluation, EvaluationOptions(), {"examples"});
}

// Lengths and rates that belong to other recipes.
void check_limits_are_read(const Config& config, const Plan& plan) {
  const int64_t tokens = config.data.max_tokens;
  if (plan.rows == rlhf::RowKind::kPrompt && tokens != DataOptions().max_tokens.get())
    refuse_unread("data.max_tokens", config.recipe, ", which draws its rows", tokens,
                  "rollout.prompt_tokens and rollout.completion_tokens");
  const auto trains_value = [](const auto& entry) {
    return entry.second.kind == "trainer" && entry.second.parameters.value("head", "") == "value";
  };
  const double rate = config.train.value_learning_rate;
  if (rate > 0 && std::none_of(plan.modules.begin(), plan.modules.end(), trains_value))
    refuse_unread("train.value_learning_rate", config.recipe, ", which trains no value model", rate,
                  "train.learning_rate, or recipe: ppo");
  const int64_t patience = config.run.patience;
  if (patience > 0 && plan.evaluation && !plan.evaluation->measures_loss)
    refuse_unread("run.patience", config.recipe, ", whose evaluation has no val/loss", patience,
                  "leaving it out, or recipe: sft");
}

// `devices` is read where the placement is a name; one with a number of its own may leave some of them unused.
void check_devices(const Config& config, const graph::Placement& placement) {
  const int64_t devices = config.devices;
  if (devices >= placement.devices || devices == Config().devices.get()) return;
  throw base::InputError(base::expectation("devices",
                                           fmt::format("at least the {} of the placement", placement.devices),
                                           std::to_string(devices), "leaving it out, or another placement"));
}

graph::Placement named_placement(const Config& config, const Plan& plan, const std::string& name) {
  if (name == "flattening") return graph::flattening(plan.graph, static_cast<int>(config.devices.get()));
  const bool word = name.find_first_of("./") == std::string::npos;
  if (word && !std::filesystem::exists(name))
    throw base::InputError(base::expectation("placement", "flattening or a file", name, "flattening"));
  return graph::parse_placement(host::read_file(name), name);
}

// A placement may say more than the recipes' modules do: it is refused, not ignored.
void check_supported(const graph::Placement& placement) {
  if (placement.staleness > 0)
    throw base::InputError(base::expectation(
        "placement.staleness", "0", std::to_string(placement.staleness),
        "leaving it out: a recipe's samples are drawn by the newest weights, the only ones that a checkpoint has"));
  for (const auto& [model, residency] : placement.residency)
    if (residency == graph::Residency::kSwap)
      throw base::InputError(base::expectation("placement.residency." + model, "device", "swap",
                                               "leaving it out: the recipes' models stay where they are"));
  for (const auto& [model, functions] : placement.layouts)
    for (const auto& [function, layout] : functions) {
      graph::Layout whole;
      whole.dp = layout.dp;
      if (layout == whole) continue;
      throw base::InputError(base::expectation(
          fmt::format("placement.layouts.{}.{}", model, function), "dp alone",
          fmt::format("tp {}, pp {}, cp {}, ep {}, zero {}, micro_batch {}{}{}", layout.tp, layout.pp, layout.cp,
                      layout.ep, layout.zero, layout.micro_batch, layout.recompute ? ", recompute" : "",
                      layout.offload ? ", offload" : ""),
          "leaving the others out: each rank of a recipe's model holds all of it; train.micro_batch_tokens bounds its "
          "micro-batches"));
    }
}

// A model that shares no device with the one that trains its weights holds neither gradient nor optimizer of them.
void keep_frozen_apart(const graph::Placement& placement, Plan& plan) {
  std::map<std::string, std::set<int>> training;  // weights -> workers
  for (const auto& [name, module] : plan.modules)
    if (module.kind == "trainer")
      for (const int worker : graph::workers_of(plan.graph, placement, name))
        training[module.parameters.at("weights")].insert(worker);
  for (auto& [name, module] : plan.modules) {
    if (module.kind == "trainer" || !module.parameters.value("trained", false)) continue;
    const std::set<int>& trainers = training[module.parameters.at("weights")];
    const std::vector<int> own = graph::workers_of(plan.graph, placement, name);
    module.parameters["trained"] =
        std::any_of(own.begin(), own.end(), [&](int worker) { return trainers.contains(worker); });
  }
}

}  // namespace

Plan complete_plan(const Config& config, const flow::Registry& registry) {
  Plan plan = make_plan(config, registry);
  if (config.data.eval->is_null()) plan.evaluation.reset();
  if (plan.evaluation)
    for (const auto& [name, model] : plan.evaluation->graph.models) plan.graph.models.try_emplace(name, model);
  check_sampling(config, plan);
  check_rows(config, plan);
  check_rewards_are_read(config, plan);
  check_sampling_is_read(config, plan);
  check_limits_are_read(config, plan);
  if (plan.rows_per_iteration <= 0)
    throw base::InputError(base::expectation("train.samples_per_update", "at least 1 with this recipe", "0"));
  return plan;
}

graph::Placement make_placement(const Config& config, Plan& plan) {
  const nlohmann::json& value = config.placement;
  const std::string name = value.is_string() ? value.get<std::string>() : "";
  graph::Placement placement =
      name.empty() ? graph::parse_placement(value.dump(), "placement") : named_placement(config, plan, name);
  graph::validate(plan.graph, placement);
  check_supported(placement);
  check_devices(config, placement);
  keep_frozen_apart(placement, plan);
  return placement;
}

std::vector<std::string> idle_options(const Config& config) {
  if (!config.data.eval->is_null()) return {};
  std::vector<std::string> set;
  if (config.run.evaluate_every > 0) set.emplace_back("run.evaluate_every");
  if (config.run.patience > 0) set.emplace_back("run.patience");
  const nlohmann::json own = set_options(config.evaluation, EvaluationOptions());
  for (const auto& [name, value] : own.items()) set.push_back("evaluation." + name);
  for (std::string& option : set)
    option = base::expectation(option, "data.eval, as it is about evaluations", "none: it does nothing",
                               "data.eval: FILE, or leaving it out");
  return set;
}

std::string resolved_text(const Config& config, const Plan& plan) {
  base::ConfigNode root = config.section_value();
  base::ConfigNode& algorithm = root.child("algorithm");
  const base::ConfigNode all = std::exchange(algorithm, base::ConfigNode{.kind = base::ConfigNode::Kind::kMap});
  for (size_t i = 0; i < all.keys.size(); ++i)
    if (plan.read_options.contains(all.keys[i])) algorithm.child(all.keys[i]) = all.children[i];
  return base::block_yaml(root);
}

int threads_of(const Config& config, const graph::Placement& placement) {
  if (config.run.threads > 0) return static_cast<int>(config.run.threads.get());
  return std::max(1, host::core_count() / placement.devices);
}

}  // namespace collimate::recipe
