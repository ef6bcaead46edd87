#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/option.h"
#include "collimate/base/section.h"

namespace collimate::rlhf {

// Losses take these values of `beta` when the config sets none: kRolloutBeta on rollouts, kPairBeta otherwise.
inline constexpr double kRolloutBeta = 0.0;
inline constexpr double kPairBeta = 0.1;

// This section declares each constant of losses and advantages once, and losses and advantages read it directly. An
// option is called as in TRL if TRL has it; otherwise one that a single loss reads begins with that loss's name.
struct AlgorithmOptions : base::Section {
  // loss_type may name one of `losses` and advantage one of `advantages`, or anything if that list is empty. The names
  // are parameters, as the lists of losses and of advantages, which know them, read this section.
  explicit AlgorithmOptions(const std::vector<std::string>& losses = {},
                            const std::vector<std::string>& advantages = {});

  base::Option<std::vector<std::string>> loss_type;
  base::Option<std::optional<std::string>> advantage;
  COLLIMATE_OPTION(std::vector<double>, loss_weights, {}, "", "one weight for each loss_type; by default each is 1",
                   base::only_with{"loss_type", [](const nlohmann::json& types) { return types.size() > 1; }});
  COLLIMATE_OPTION(std::optional<double>, beta, std::nullopt, "",
                   "how strongly the policy is held to its reference; grpo: weight of the KL divergence in the loss, 0 "
                   "by default; losses on pairs and kto: inverse temperature, 0.1 by default",
                   base::at_least(0.0));
  // Policy losses.
  COLLIMATE_OPTION(std::string, importance_sampling_level, "token", "",
                   "importance ratio of each token, or of its sequence: the geometric mean of its tokens' (sequence), "
                   "the same with each token's gradient (sequence_token), their product (sequence_sum)",
                   base::one_of({"token", "sequence", "sequence_token", "sequence_sum"}));
  COLLIMATE_OPTION(double, epsilon, 0.2, "", "the importance ratio is clipped below 1 - epsilon and above 1 + epsilon",
                   base::at_least(0.0));
  COLLIMATE_OPTION(std::optional<double>, epsilon_high, std::nullopt, "",
                   "upper clip range, by default epsilon; cispo: the largest ratio");
  COLLIMATE_OPTION(std::optional<double>, delta, std::nullopt, "",
                   "largest ratio where the advantage is negative too (two-sided clipping)");
  COLLIMATE_OPTION(std::string, token_normalizer, "update", "",
                   "dapo, cispo and vespo divide by the tokens of each update, or by an update's share of the tokens "
                   "of the whole iteration (as TRL has it)",
                   base::one_of({"update", "iteration"}));
  COLLIMATE_OPTION(std::optional<double>, log_ratio_min, std::nullopt, "nats",
                   "log of the importance ratio is raised to this before it is exponentiated");
  COLLIMATE_OPTION(std::optional<double>, log_ratio_max, std::nullopt, "nats",
                   "log of the importance ratio is lowered to this before it is exponentiated");
  COLLIMATE_OPTION(std::optional<double>, token_loss_limit, std::nullopt, "",
                   "largest loss of a token, without its KL divergence; one above it has no gradient");
  COLLIMATE_OPTION(std::string, kl_loss_estimator, "k3", "",
                   "estimator of the KL divergence in the loss; k1+ and k3+ have the gradient of k2",
                   base::one_of({"k1", "k2", "k3", "k1+", "k3+"}), base::only_with{"beta"});
  COLLIMATE_OPTION(std::optional<double>, kl_loss_log_ratio_limit, std::nullopt, "nats",
                   "k3 in the loss: log-ratios against the reference are clamped to plus and minus this",
                   base::above(0.0));
  COLLIMATE_OPTION(std::optional<double>, kl_loss_limit, std::nullopt, "nats",
                   "k3 in the loss: largest KL divergence of a token", base::above(0.0));
  COLLIMATE_OPTION(bool, use_bias_correction_kl, false, "", "multiply the KL divergence by the importance ratio");
  COLLIMATE_OPTION(double, entropy_coefficient, 0.0, "", "weight of the entropy in the loss, as a bonus");
  COLLIMATE_OPTION(double, top_entropy_quantile, 1.0, "",
                   "share of the tokens that is trained: those with the highest entropy", base::between(0.0, 1.0));
  COLLIMATE_OPTION(std::optional<double>, off_policy_mask_threshold, std::nullopt, "nats",
                   "leave out samples with a negative advantage whose log-probs have fallen by more than this since "
                   "sampling, on average");
  COLLIMATE_OPTION(double, sapo_temperature_pos, 1.0, "",
                   "sapo: temperature of the gate where the advantage is positive", base::above(0.0));
  COLLIMATE_OPTION(double, sapo_temperature_neg, 1.05, "",
                   "sapo: temperature of the gate where the advantage is not positive", base::above(0.0));
  COLLIMATE_OPTION(double, vespo_k_pos, 2.0, "", "vespo: exponent of the ratio where the advantage is not negative");
  COLLIMATE_OPTION(double, vespo_lambda_pos, 3.0, "", "vespo: decay where the advantage is not negative");
  COLLIMATE_OPTION(double, vespo_k_neg, 3.0, "", "vespo: exponent of the ratio where the advantage is negative");
  COLLIMATE_OPTION(double, vespo_lambda_neg, 2.0, "", "vespo: decay where the advantage is negative");
  COLLIMATE_OPTION(double, clip_cov_share, 0.0002, "", "clip_cov: share of the update's tokens that is left out",
                   base::between(0.0, 1.0));
  COLLIMATE_OPTION(double, clip_cov_low, 1.0, "", "clip_cov: tokens are left out whose covariance is above this");
  COLLIMATE_OPTION(double, clip_cov_high, 5.0, "", "clip_cov: and below this");
  COLLIMATE_OPTION(double, kl_cov_share, 0.0002, "", "kl_cov: share of the update's tokens that have a penalty",
                   base::between(0.0, 1.0));
  COLLIMATE_OPTION(double, kl_cov_coefficient, 1.0, "", "kl_cov: weight of their |log-ratio|", base::at_least(0.0));
  COLLIMATE_OPTION(bool, online_dpo_average, false, "",
                   "online_dpo and online_ipo: compare log-ratios of a token on average, not of whole completions");
  // Rewards.
  COLLIMATE_OPTION(std::string, step_reward, "none", "",
                   "what models.reward gives a completion: its score at the last token (none), or of the probabilities "
                   "that the steps are right, where it is a process reward model, the last, min, mean or product",
                   base::one_of({"none", "last", "min", "mean", "product"}));
  // Advantages.
  COLLIMATE_OPTION(
      std::string, scale_rewards, "group", "",
      "advantages are divided by the standard deviation of the rewards of their group, of the batch, or not at all",
      base::one_of({"group", "batch", "none"}));
  COLLIMATE_OPTION(double, advantage_epsilon, 1e-4, "", "added to that standard deviation", base::at_least(0.0));
  COLLIMATE_OPTION(std::string, lone_samples, "zero", "",
                   "advantage of a sample that is alone in its group: zero, or its reward (as verl has it)",
                   base::one_of({"zero", "reward"}));
  COLLIMATE_OPTION(
      std::string, reward_scaling, "none", "",
      "rewards are divided by nothing, or by the standard deviation of all rewards of the run so far (running)",
      base::one_of({"none", "running"}));
  COLLIMATE_OPTION(std::optional<double>, reward_clip, std::nullopt, "", "rewards are clipped to plus and minus this",
                   base::above(0.0));
  COLLIMATE_OPTION(
      int64_t, overlong_buffer_tokens, 0, "tokens",
      "completions that end within so many tokens of their limit lose reward, the more the longer they are (DAPO)",
      base::at_least(int64_t{0}));
  COLLIMATE_OPTION(double, overlong_penalty, 1.0, "", "what a completion as long as its limit loses so",
                   base::at_least(0.0), base::only_with{"overlong_buffer_tokens"});
  COLLIMATE_OPTION(bool, mask_truncated_completions, false, "",
                   "do not train on completions that were cut at their limit");
  COLLIMATE_OPTION(bool, shuffle_rewards, false, "",
                   "control experiment: rewards are shuffled among the samples of an iteration");
  COLLIMATE_OPTION(std::optional<double>, missing_eos_penalty, std::nullopt, "",
                   "subtracted from the reward of a completion that was cut at its limit");
  COLLIMATE_OPTION(double, gamma, 1.0, "",
                   "discount of later rewards; ppo and reinforce_plus_plus: for each token, process: for each step",
                   base::between(0.0, 1.0));
  COLLIMATE_OPTION(double, lambda, 0.95, "", "ppo: lambda of generalised advantage estimation (GAE)",
                   base::between(0.0, 1.0));
  COLLIMATE_OPTION(
      std::optional<double>, kl_coefficient, std::nullopt, "",
      "what a nat of KL divergence from the reference costs in reward; by default 0.05 in ppo and 0 elsewhere",
      base::at_least(0.0));
  COLLIMATE_OPTION(
      std::string, kl_estimator, "k1", "",
      "estimator of that KL divergence; k1 is the log-ratio, k2 half its square, k3 is never negative either",
      base::one_of({"k1", "k2", "k3"}),
      base::only_with{"kl_coefficient", [](const nlohmann::json& cost) { return cost != 0; }});
  COLLIMATE_OPTION(
      std::optional<double>, kl_target, std::nullopt, "nats",
      "kl_coefficient rises while that KL divergence is above this and falls while it is below (Ziegler et al. 2019)",
      base::above(0.0));
  COLLIMATE_OPTION(std::string, kl_target_of, "token", "",
                   "whether kl_target is of a token, as in verl, or of a whole completion",
                   base::one_of({"token", "completion"}), base::only_with{"kl_target"});
  COLLIMATE_OPTION(int64_t, kl_horizon, 10000, "samples",
                   "kl_target: samples over which kl_coefficient changes by a fifth at most, or by as much as the KL "
                   "divergence is off where that is less",
                   base::at_least(int64_t{1}), base::only_with{"kl_target"});
  COLLIMATE_OPTION(bool, whiten_rewards, false, "", "ppo: whiten rewards before GAE");
  COLLIMATE_OPTION(bool, whiten_advantages, true, "", "ppo: whiten advantages");
  COLLIMATE_OPTION(
      std::string, whiten_variance, "unbiased", "",
      "whitening by the variance that divides by n - 1, or by n and is at least 1e-8 (biased, as in OpenRLHF)",
      base::one_of({"unbiased", "biased"}));
  COLLIMATE_OPTION(std::optional<double>, value_clip, 0.2, "",
                   "ppo: how far a value may move from its old one before the loss clips it; null never clips",
                   base::at_least(0.0));
  // Losses on pairs and on marked answers.
  COLLIMATE_OPTION(double, label_smoothing, 0.0, "",
                   "losses on pairs: share of the pairs that are taken to be labelled the wrong way round",
                   base::at_least(0.0), base::below(0.5));
  COLLIMATE_OPTION(std::string, f_divergence_type, "reverse_kl", "",
                   "dpo: divergence whose derivative turns a log-ratio into a score",
                   base::one_of({"reverse_kl", "forward_kl", "js_divergence", "alpha_divergence"}));
  COLLIMATE_OPTION(double, f_alpha_divergence_coef, 0.5, "", "dpo: alpha of alpha_divergence");
  COLLIMATE_OPTION(std::optional<double>, ld_alpha, std::nullopt, "",
                   "dpo: weight of the tokens of an answer beyond the length of the shorter answer",
                   base::between(0.0, 1.0));
  COLLIMATE_OPTION(
      bool, use_weighting, false, "",
      "dpo: weigh each pair by how likely the policy is to write both of its answers (WPO), not in sft and aot");
  COLLIMATE_OPTION(double, discopop_tau, 0.05, "", "discopop: temperature of the blend", base::above(0.0));
  COLLIMATE_OPTION(double, cpo_alpha, 1.0, "", "cpo and simpo: weight of the likelihood of the chosen answer");
  COLLIMATE_OPTION(double, simpo_gamma, 0.5, "", "simpo: margin by which the chosen answer should win");
  COLLIMATE_OPTION(double, desirable_weight, 1.0, "", "kto: weight of desirable answers", base::at_least(0.0));
  COLLIMATE_OPTION(double, undesirable_weight, 1.0, "", "kto: weight of undesirable answers", base::at_least(0.0));
  // Losses on a teacher's distributions.
  COLLIMATE_OPTION(int64_t, teacher_tokens, 64, "tokens",
                   "most likely tokens of the teacher that are compared one by one, and all others together; the "
                   "vocabulary's where that is smaller",
                   base::at_least(int64_t{1}));
  COLLIMATE_OPTION(double, on_policy_share, 0.0, "",
                   "distill: share of the rows whose answers the model draws itself, in the place of the data's",
                   base::between(0.0, 1.0));
  COLLIMATE_OPTION(double, distillation_temperature, 1.0, "", "temperature of both distributions that are compared",
                   base::above(0.0));
  COLLIMATE_OPTION(
      double, data_loss_weight, 0.0, "",
      "share of the data's negative log-likelihood in the loss, beside that of the divergence from the teacher",
      base::between(0.0, 1.0));
  COLLIMATE_OPTION(
      double, jsd_beta, 0.5, "",
      "jsd: share of the teacher in the mixture that both are compared with; 0 is forward_kl, 1 is reverse_kl",
      base::between(0.0, 1.0));
  COLLIMATE_OPTION(double, center_rewards_coefficient, 0.0, "", "reward: how strongly scores are pulled to zero",
                   base::at_least(0.0));
};

}  // namespace collimate::rlhf
