#include "collimate/recipe/unread.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "collimate/base/error.h"
#include "collimate/generate/sampling_options.h"
#include "collimate/recipe/list.h"

namespace collimate::recipe {
namespace {

// The options that have another value than by default, with their values: "reward", "train.ppo_epochs".
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

// The remedy for what only recipes that draw samples read.
std::string or_another_recipe() {
  std::vector<std::string> names;
  for (const RecipeEntry& entry : recipes())
    if (entry.rows == rlhf::RowKind::kPrompt) names.push_back(entry.name);
  return fmt::format("leaving it out, or recipe: {}", fmt::join(names, " or "));
}

std::string as_json(const nlohmann::json& value) { return value.dump(); }
std::string as_text(const nlohmann::json& value) { return value.get<std::string>(); }
std::string unnamed(const nlohmann::json&) { return "a value"; }

// An option that not every recipe reads, and what is said where it is set and not read.
struct PartlyRead {
  std::string option;  // or a section: each of its options
  std::string expected, remedy;
  std::string (*got)(const nlohmann::json& value) = as_json;

  bool covers(const std::string& name) const { return name == option || name.starts_with(option + "."); }
};

// All of them, in the order in which they are looked at. Those that a plan reads are in Plan::read_options.
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
      {"data.ptx", no_samples, other, unnamed},
      {"train.ptx_weight", "nothing without data.ptx, whose texts it weighs", "data.ptx: FILE, or leaving it out"},
      {"reward", no_rewards, other, unnamed},
      {"evaluation.reward", no_rewards, other, unnamed},
      {"rollout", no_samples, other},
      {"evaluation", no_samples, other},
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

// An option that another one switches on: nothing reads it while that is off.
struct Dependent {
  std::string option;  // "models.*.lora.alpha": of any model
  std::string on;      // beside it, in the same section
  bool (*is_on)(const nlohmann::json& value);
};

bool is_positive(const nlohmann::json& value) { return value.get<int64_t>() > 0; }
bool is_true(const nlohmann::json& value) { return value.get<bool>(); }
bool is_above_0(const nlohmann::json& value) { return value.get<double>() > 0; }  // greedy draws truncate nothing
bool is_some_above_0(const nlohmann::json& value) { return value.is_number() && value.get<double>() > 0; }
bool is_not_0(const nlohmann::json& value) { return value.is_null() || value.get<double>() != 0; }
bool is_several(const nlohmann::json& value) { return value.is_array() && value.size() > 1; }

const std::vector<Dependent>& dependents() {
  static const std::vector<Dependent> list = [] {
    std::vector<Dependent> all = {
        {"models.*.initializer_std", "from_scratch", is_true},
        {"models.*.lora.alpha", "rank", is_positive},
        {"models.*.lora.rslora", "rank", is_positive},
        {"models.*.lora.dropout", "rank", is_positive},
        {"models.*.lora.b_rate_ratio", "rank", is_positive},
        {"models.*.lora.targets", "rank", is_positive},
        {"models.*.lora.modules_to_save", "rank", is_positive},
        {"data.val_size", "eval", [](const nlohmann::json& value) { return value.is_null(); }},
        {"algorithm.loss_weights", "loss_type", is_several},
        {"algorithm.kl_loss_estimator", "beta", is_some_above_0},
        {"algorithm.kl_estimator", "kl_coefficient", is_not_0},
        {"algorithm.kl_target_of", "kl_target", is_some_above_0},
        {"algorithm.kl_horizon", "kl_target", is_some_above_0},
        {"algorithm.overlong_penalty", "overlong_buffer_tokens", is_positive},
        {"rollout.replace_limit", "replace_equal_groups", is_true},
        {"rollout.speculation_tokens", "speculation", [](const nlohmann::json& value) { return value != "off"; }},
        {"rollout.draft_model", "speculation", [](const nlohmann::json& value) { return value == "draft"; }},
        {"train.lr_minimum_ratio", "lr_schedule",
         [](const nlohmann::json& value) { return value == "cosine_with_min"; }}};
    for (const generate::SamplingField& field : generate::kSamplingFields)
      if (field.truncates) all.push_back({fmt::format("evaluation.{}", field.name), "temperature", is_above_0});
    return all;
  }();
  return list;
}

// "models.policy.lora.alpha" as the list has it.
std::string of_any_model(const std::string& option) {
  if (!option.starts_with("models.")) return option;
  const size_t rest = option.find('.', option.find('.') + 1);
  return rest == std::string::npos ? option : fmt::format("models.*{}", option.substr(rest));
}

bool is_switched_off(const Config& config, const std::string& option) {
  const auto found = std::ranges::find(dependents(), of_any_model(option), &Dependent::option);
  if (found == dependents().end()) return false;
  std::string path = fmt::format("/{}.{}", option.substr(0, option.rfind('.')), found->on);
  std::ranges::replace(path, '.', '/');
  return !found->is_on(base::to_json(config.section_value()).at(nlohmann::json::json_pointer(path)));
}

// Bounds that only other programs' constants set, and shapes of rewards that few runs have.
bool is_of_few_losses(const std::string& option) {
  static const std::set<std::string> list = {
      "log_ratio_min",    "log_ratio_max", "token_loss_limit",       "kl_loss_log_ratio_limit",    "kl_loss_limit",
      "token_normalizer", "lone_samples",  "overlong_buffer_tokens", "whiten_advantages",          "reward_scaling",
      "reward_clip",      "kl_target",     "whiten_variance",        "mask_truncated_completions", "use_weighting"};
  return option.starts_with("algorithm.") && list.contains(option.substr(option.find('.') + 1));
}

// Mixtures of experts read these, latent attention, chat templates that have variables, samples of a given form or from
// a rounded cache, rounded models, and matrices, blocks and rows that devices share or leave: at their defaults they
// say nothing of a run.
bool concerns_few_runs(const std::string& option) {
  const std::string any = of_any_model(option);
  return option == "plugins" || option == "options" || option.starts_with("train.router_") ||
         any == "models.*.chat_template_kwargs" || any == "models.*.latent_cache" ||
         any == "models.*.reduction_chunks" || option == "tp" || option == "pp" || option == "cp" || option == "ep" ||
         option == "zero" || option == "rollout.kv_cache_dtype" || option == "preset" ||
         option == "rollout.replace_equal_groups" || option == "data.train_from_difference" ||
         is_of_few_losses(option) || option == "run.best_metric" || option == "train.export_dtype" ||
         option == "train.ema" || option == "train.offload" || option == "data.ptx" || option == "run.swap_directory" ||
         option.ends_with(".regex") || option.ends_with(".json_schema");
}

}  // namespace

bool is_unread(const Config& config, const Plan& plan, const std::string& option) {
  if (!plan.measures() && is_of_evaluations(option)) return true;
  for (const PartlyRead& partly : partly_read(config.recipe, plan))
    if (partly.covers(option) && !is_read(plan, option)) return true;
  return concerns_few_runs(option) || is_switched_off(config, option);
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
