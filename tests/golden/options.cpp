#include "tests/golden/options.h"

#include <fmt/format.h>

#include "collimate/base/error.h"
#include "collimate/rlhf/loss/policy.h"
#include "collimate/rlhf/loss/preference.h"
#include "collimate/rlhf/loss/sft.h"

namespace collimate::golden {
namespace {

const json kNull;

// Options of TRL that change the numbers and that we do not have: they must be at their default.
void refuse_unknown(const Options& options, bool required) {
  static const std::map<std::string, json> kDefaults = {
      {"use_weighting", false}, {"ld_alpha", nullptr},       {"off_policy_mask_threshold", nullptr},
      {"wpo_gain", nullptr},    {"entropy_target", nullptr}, {"label_smoothing_factor", 0.0}};
  for (const auto& [name, fallback] : kDefaults) {
    const json& value = options.find(name);
    if (!value.is_null() && value != fallback)
      throw UnknownKind(fmt::format("option {} = {}", name, value.dump()), required);
  }
}

// A loss by name: our InputError for an unknown name is an unknown kind here.
template <class Make>
rlhf::Loss known(const std::string& kind, const std::string& loss_type, Make make) {
  try {
    return make();
  } catch (const base::InputError& error) {
    throw UnknownKind(fmt::format("{} loss {} ({})", kind, loss_type, error.what()), false);
  }
}

std::vector<std::string> names_of(const json& loss_types, const std::string& fallback) {
  if (loss_types.is_null()) return {fallback};
  if (loss_types.is_string()) return {loss_types.get<std::string>()};
  return loss_types.get<std::vector<std::string>>();
}

std::optional<double> optional_number(const Options& options, const std::string& name) {
  if (options.find(name).is_null()) return std::nullopt;
  return options.find(name).get<double>();
}

rlhf::Loss one_dpo_loss(const Options& o, const std::string& type) {
  // TRL's sigmoid has no label smoothing; ours has, so it is passed to those of TRL's losses that read it.
  const bool smooth = type == "robust" || type == "exo_pair";
  return known("dpo", type, [&] {
    return rlhf::dpo_loss({.loss_type = type,
                           .beta = o.number("beta", 0.1),
                           .label_smoothing = smooth ? o.number("label_smoothing", 0.0) : 0.0,
                           .f_divergence = o.text("f_divergence_type", "reverse_kl"),
                           .alpha = o.number("f_alpha_divergence_coef", 0.5),
                           .discopop_tau = o.number("discopop_tau", 0.05)});
  });
}

}  // namespace

const json& Options::find(const std::string& name) const {
  if (over_.contains(name)) return over_[name];
  if (hyper_->contains(name)) return (*hyper_)[name];
  return kNull;
}

double Options::number(const std::string& name, double fallback) const {
  const json& value = find(name);
  return value.is_number() ? value.get<double>() : fallback;
}

std::string Options::text(const std::string& name, const std::string& fallback) const {
  const json& value = find(name);
  return value.is_string() ? value.get<std::string>() : fallback;
}

bool Options::flag(const std::string& name, bool fallback) const {
  const json& value = find(name);
  return value.is_boolean() ? value.get<bool>() : fallback;
}

std::string trainer_kind(const json& golden) {
  const std::string trainer = golden.value("trainer", "");
  static const std::vector<std::pair<std::string, std::string>> kKinds = {
      {"SFTTrainer", "sft"},   {"DPOTrainer", "dpo"}, {"RewardTrainer", "reward"}, {"KTOTrainer", "kto"},
      {"ORPOTrainer", "orpo"}, {"CPOTrainer", "cpo"}, {"GRPOTrainer", "grpo"},     {"PPOTrainer", "ppo"}};
  for (const auto& [name, kind] : kKinds)
    if (trainer.find(name) != std::string::npos) return kind;
  return "";
}

train::LearnerOptions learner_options(const Options& o) {
  const std::string optimizer = o.text("optim", "adamw_torch");
  if (!optimizer.starts_with("adamw_torch")) throw UnknownKind("optimizer " + optimizer, true);
  return {.adam = {.beta1 = o.number("adam_beta1", 0.9),
                   .beta2 = o.number("adam_beta2", 0.999),
                   .epsilon = o.number("adam_epsilon", 1e-8),
                   .weight_decay = o.number("weight_decay", 0.0)},
          .max_grad_norm = o.number("max_grad_norm", 1.0),
          .micro_batch_tokens = int64_t{1} << 40,
          .temperature = static_cast<float>(o.number("temperature", 1.0))};
}

rlhf::Loss sft_loss_of(const Options& o) {
  const std::string type = o.text("loss_type", "nll");
  refuse_unknown(o, type == "nll");
  return known("sft", type, [&] { return rlhf::sft_loss({.loss_type = type == "chunked_nll" ? "nll" : type}); });
}

rlhf::Loss reward_loss_of(const Options& o) {
  refuse_unknown(o, true);
  return rlhf::reward_loss({.center_rewards_coefficient = o.number("center_rewards_coefficient", 0.0)});
}

rlhf::Loss dpo_loss_of(const Options& o) {
  const std::vector<std::string> types = names_of(o.find("loss_type"), "sigmoid");
  bool required = true;
  for (const std::string& type : types) required &= type == "sigmoid" || type == "ipo" || type == "hinge";
  refuse_unknown(o, required);
  std::vector<double> weights(types.size(), 1.0);
  if (o.find("loss_weights").is_array()) weights = o.find("loss_weights").get<std::vector<double>>();
  std::vector<rlhf::Loss> losses;
  for (const std::string& type : types) losses.push_back(one_dpo_loss(o, type));
  return losses.size() == 1 && weights[0] == 1.0 ? losses[0] : rlhf::weighted_sum(losses, weights);
}

rlhf::Loss policy_loss_of(const Options& o, double items) {
  const std::string type = o.text("loss_type", "dapo");
  const bool required = type == "grpo" || type == "dapo" || type == "dr_grpo" || type == "bnpo" || type == "cispo";
  refuse_unknown(o, required);
  // num_items_in_batch counts the generation batch; one accumulation window is a part of it.
  const double accumulation = o.number("gradient_accumulation_steps", 1);
  const double window = accumulation / o.number("steps_per_generation", accumulation);
  return known("grpo", type, [&] {
    return rlhf::policy_loss({.loss_type = type,
                              .importance_sampling_level = o.text("importance_sampling_level", "token"),
                              .epsilon = o.number("epsilon", 0.2),
                              .epsilon_high = optional_number(o, "epsilon_high"),
                              .delta = optional_number(o, "delta"),
                              .beta = o.number("beta", 0.0),
                              .use_bias_correction_kl = o.flag("use_bias_correction_kl", true),
                              .entropy_coefficient = o.number("entropy_coef", 0.0),
                              .top_entropy_quantile = o.number("top_entropy_quantile", 1.0),
                              .sapo_temperature_positive = o.number("sapo_temperature_pos", 1.0),
                              .sapo_temperature_negative = o.number("sapo_temperature_neg", 1.05),
                              .max_completion_tokens = static_cast<int64_t>(o.number("max_completion_length", 256)),
                              .token_normalizer = items * window,
                              .vespo = {o.number("vespo_k_pos", 2.0), o.number("vespo_lambda_pos", 3.0),
                                        o.number("vespo_k_neg", 3.0), o.number("vespo_lambda_neg", 2.0)}});
  });
}

}  // namespace collimate::golden
