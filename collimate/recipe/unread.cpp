#include "collimate/recipe/unread.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "collimate/base/error.h"
#include "collimate/recipe/list.h"

namespace collimate::recipe {
namespace {

// Returns the options that have another value than by default, with their values: "reward", "train.ppo_epochs".
nlohmann::json set_options(const Config& config) {
  const nlohmann::json values = base::to_json(config.section_value());
  const nlohmann::json defaults = base::to_json(Config().section_value());
  nlohmann::json set = nlohmann::json::object();
  for (const auto& [name, value] : values.items()) {
    const nlohmann::json& standard = defaults.at(name);
    if (value == standard) continue;
    if (!value.is_object() || !standard.is_object()) {
      set[name] = value;
      continue;
    }
    for (const auto& [inner, own] : value.items())
      if (own != standard.value(inner, nlohmann::json())) set[name + "." + inner] = own;
  }
  return set;
}

// Returns the remedy for what only recipes that draw samples read.
std::string or_another_recipe() {
  std::vector<std::string> names;
  for (const RecipeEntry& entry : recipes())
    if (entry.rows == rlhf::RowKind::kPrompt) names.push_back(entry.name);
  return fmt::format("leaving it out, or recipe: {}", fmt::join(names, " or "));
}

std::string as_json(const nlohmann::json& value) { return value.dump(); }
std::string as_text(const nlohmann::json& value) { return value.get<std::string>(); }
std::string unnamed(const nlohmann::json&) { return "a value"; }

// Describes an option that not every recipe reads, and what is said where it is set and not read.
struct PartlyRead {
  std::string option;  // or a section: each of its options
  std::string expected, remedy;
  std::string (*got)(const nlohmann::json& value) = as_json;

  bool covers(const std::string& name) const { return name == option || name.starts_with(option + "."); }
};

// Returns all of them, in the order in which they are looked at. Plan::read_options has those that a plan reads.
std::vector<PartlyRead> partly_read(const std::string& recipe, const Plan& plan) {
  const std::string expected = fmt::format("an option that recipe {} reads", recipe);
  const std::string no_samples = expected + ", which draws no samples";
  const std::string no_rewards = fmt::format("nothing with recipe {}, which uses no rewards", recipe);
  const std::string other = or_another_recipe();
  std::vector<std::string> constants;
  for (const std::string& option : plan.read_options)
    if (option.starts_with("algorithm.")) constants.push_back(option.substr(option.find('.') + 1));
  return {
      {"algorithm", fmt::format("{} ({})", expected, fmt::join(constants, ", ")), ""},
      {"data.train_on", fmt::format("completion with recipe {}", recipe), "recipe: sft", as_text},
      {"data.train_from_difference", expected, "recipe: dpo with a loss that trains no prompts"},
      {"data.step_separator", expected, "recipe: process_reward, or algorithm.step_reward"},
      {"data.ptx", no_samples, other, unnamed},
      {"train.ptx_weight", "nothing without data.ptx, whose texts it weighs", "data.ptx: FILE, or leaving it out"},
      {"rollout",
       plan.read_options.contains("rollout.temperature")
           ? expected + ", whose rows are those of data.train and of train.samples_per_update"
           : no_samples,
       other},
      {"reward", no_rewards, other, unnamed},
      {"evaluation.reward", no_rewards, other, unnamed},
      {"evaluation", no_samples, "evaluation.measure: completions, which draws some, or " + other},
      {"data.max_tokens", expected + ", which draws its rows", "rollout.prompt_tokens and rollout.completion_tokens"},
      {"train.value_learning_rate", expected + ", which trains no value model", "train.learning_rate, or recipe: ppo"},
      {"train.router_replay", no_samples, other},
      {"train.mismatch_limit", no_samples, other},
      {"train.mismatch_check", no_samples, other},
      {"run.patience", expected + ", whose evaluation has no val/loss", "leaving it out, or recipe: sft"}};
}

bool is_read(const Plan& plan, const std::string& option) {
  return plan.read_options.contains(option) || plan.read_options.contains(option.substr(0, option.find('.')));
}

bool is_of_evaluations(const std::string& option) {
  return option.starts_with("evaluation.") || option == "run.evaluate_every" || option == "run.patience";
}

// Returns "models.policy.lora.alpha" as descriptions have it: "models.<name>.lora.alpha".
std::string of_any_model(const std::string& option) {
  if (!option.starts_with("models.")) return option;
  const size_t rest = option.find('.', option.find('.') + 1);
  return rest == std::string::npos ? option : fmt::format("models.<name>{}", option.substr(rest));
}

// Returns the options that another one beside them switches on.
const std::map<std::string, base::only_with>& switched_options() {
  static const std::map<std::string, base::only_with> all = [] {
    std::vector<base::OptionInfo> infos;
    Config().describe_section("", infos);
    std::map<std::string, base::only_with> switched;
    for (const base::OptionInfo& info : infos)
      if (!info.read.option.empty()) switched[info.path] = info.read;
    return switched;
  }();
  return all;
}

bool is_switched_off(const Config& config, const std::string& option) {
  const auto found = switched_options().find(of_any_model(option));
  if (found == switched_options().end()) return false;
  std::string path = fmt::format("/{}.{}", option.substr(0, option.rfind('.')), found->second.option);
  std::ranges::replace(path, '.', '/');
  return !found->second.on(base::to_json(config.section_value()).at(nlohmann::json::json_pointer(path)));
}

// Returns whether this is a bound that only other programs' constants set, or a shape of rewards that few runs have.
bool is_of_few_losses(const std::string& option) {
  static const std::set<std::string> list = {
      "log_ratio_min",    "log_ratio_max", "token_loss_limit",       "kl_loss_log_ratio_limit",    "kl_loss_limit",
      "token_normalizer", "lone_samples",  "overlong_buffer_tokens", "whiten_advantages",          "reward_scaling",
      "reward_clip",      "kl_target",     "whiten_variance",        "mask_truncated_completions", "use_weighting",
      "step_reward"};
  return option.starts_with("algorithm.") && list.contains(option.substr(option.find('.') + 1));
}

// Returns whether an option concerns few runs: those with mixtures of experts, latent attention, chat templates that
// have variables, samples of a given form or from a rounded cache, rounded models, and matrices, blocks and rows that
// devices share or leave. At their defaults such options say nothing of a run.
bool concerns_few_runs(const std::string& option) {
  const std::string any = of_any_model(option);
  return option == "plugins" || option == "options" || option.starts_with("train.router_") ||
         any == "models.<name>.chat_template_kwargs" || any == "models.<name>.latent_cache" ||
         any == "models.<name>.reduction_chunks" || option == "tp" || option == "pp" || option == "cp" ||
         option == "cp_kind" || option == "ep" || option == "zero" || option == "rollout.kv_cache_dtype" ||
         option == "preset" || option == "rollout.replace_equal_groups" || option.starts_with("rollout.round_") ||
         option == "data.train_from_difference" || option == "data.last_batch" || is_of_few_losses(option) ||
         option == "run.best_metric" || option == "train.export_dtype" || option == "train.ema" ||
         option == "train.offload" || option == "data.ptx" || option == "run.swap_directory" ||
         option.ends_with(".regex") || option.ends_with(".json_schema");
}

}  // namespace

bool is_unread(const Config& config, const Plan& plan, const std::string& option) {
  if (!plan.measures() && is_of_evaluations(option)) return true;
  for (const PartlyRead& partly : partly_read(config.recipe, plan))
    if (partly.covers(option) && !is_read(plan, option)) return true;
  return is_switched_off(config, option);
}

bool says_nothing(const Config& config, const Plan& plan, const std::string& option) {
  return concerns_few_runs(option) || is_unread(config, plan, option);
}

void refuse_unread(const Config& config, const Plan& plan) {
  const nlohmann::json set = set_options(config);
  for (const PartlyRead& partly : partly_read(config.recipe, plan))
    for (const auto& [option, value] : set.items())
      if (partly.covers(option) && !is_read(plan, option))
        throw base::InputError(base::expectation(option, partly.expected, partly.got(value), partly.remedy));
}

std::vector<std::string> idle_options(const Config& config) {
  if (config.evaluates()) return {};
  std::vector<std::string> idle;
  const nlohmann::json set = set_options(config);
  for (const auto& [option, value] : set.items())
    if (is_of_evaluations(option)) idle.push_back(option);
  for (std::string& option : idle)
    option = base::expectation(option, "data.eval, as it is about evaluations", "none: it does nothing",
                               "data.eval: FILE, data.val_size, or leaving it out");
  return idle;
}

}  // namespace collimate::recipe
