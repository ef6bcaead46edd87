#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/option.h"
#include "collimate/base/section.h"

namespace collimate::rlhf {

// `beta` where the config leaves it out, of losses on rollouts and of the others that read it.
inline constexpr double kRolloutBeta = 0.0;
inline constexpr double kPairBeta = 0.1;

// Constants of losses and advantages, each declared once: losses and advantages read this section itself. Names as in
// TRL where TRL has the option.
struct AlgorithmOptions : base::Section {
  // The lists of losses and of advantages, which read these options, know what loss_type and advantage may be; without
  // names they may be anything.
  explicit AlgorithmOptions(const std::vector<std::string>& losses = {},
                            const std::vector<std::string>& advantages = {});

  base::Option<std::vector<std::string>> loss_type;
  base::Option<std::optional<std::string>> advantage;
  base::Option<std::vector<double>> loss_weights{
      this, "loss_weights", {}, "", "one weight for each loss_type; by default each is 1"};
  base::Option<std::optional<double>> beta{
      this,
      "beta",
      std::nullopt,
      "",
      "how strongly the policy is held to its reference; grpo: weight of the KL divergence in the loss, 0 by default; "
      "losses on pairs and kto: inverse temperature, 0.1 by default",
      base::at_least(0.0)};
  // Policy losses.
  base::Option<std::string> importance_sampling_level{this,
                                                      "importance_sampling_level",
                                                      "token",
                                                      "",
                                                      "whether the importance ratio is one of tokens or of sequences",
                                                      base::one_of({"token", "sequence", "sequence_token"})};
  base::Option<double> epsilon{this,
                               "epsilon",
                               0.2,
                               "",
                               "the importance ratio is clipped below 1 - epsilon and above 1 + epsilon",
                               base::at_least(0.0)};
  base::Option<std::optional<double>> epsilon_high{this, "epsilon_high", std::nullopt, "",
                                                   "upper clip range, by default epsilon; cispo: the largest ratio"};
  base::Option<std::optional<double>> delta{this, "delta", std::nullopt, "",
                                            "largest ratio where the advantage is negative too (two-sided clipping)"};
  base::Option<bool> use_bias_correction_kl{this, "use_bias_correction_kl", false, "",
                                            "multiply the KL divergence by the importance ratio"};
  base::Option<double> entropy_coefficient{this, "entropy_coefficient", 0.0, "",
                                           "weight of the entropy in the loss, as a bonus"};
  base::Option<double> top_entropy_quantile{this,
                                            "top_entropy_quantile",
                                            1.0,
                                            "",
                                            "share of the tokens that is trained: those with the highest entropy",
                                            base::between(0.0, 1.0)};
  base::Option<std::optional<double>> off_policy_mask_threshold{
      this, "off_policy_mask_threshold", std::nullopt, "nats",
      "leave out samples with a negative advantage whose log-probs have fallen by more than this since sampling, on "
      "average"};
  base::Option<double> sapo_temperature_pos{this,
                                            "sapo_temperature_pos",
                                            1.0,
                                            "",
                                            "sapo: temperature of the gate where the advantage is positive",
                                            base::above(0.0)};
  base::Option<double> sapo_temperature_neg{this,
                                            "sapo_temperature_neg",
                                            1.05,
                                            "",
                                            "sapo: temperature of the gate where the advantage is not positive",
                                            base::above(0.0)};
  base::Option<double> vespo_k_pos{this, "vespo_k_pos", 2.0, "",
                                   "vespo: exponent of the ratio where the advantage is not negative"};
  base::Option<double> vespo_lambda_pos{this, "vespo_lambda_pos", 3.0, "",
                                        "vespo: decay where the advantage is not negative"};
  base::Option<double> vespo_k_neg{this, "vespo_k_neg", 3.0, "",
                                   "vespo: exponent of the ratio where the advantage is negative"};
  base::Option<double> vespo_lambda_neg{this, "vespo_lambda_neg", 2.0, "",
                                        "vespo: decay where the advantage is negative"};
  // Advantages.
  base::Option<std::string> scale_rewards{
      this,
      "scale_rewards",
      "group",
      "",
      "advantages are divided by the standard deviation of the rewards of their group, of the batch, or not at all",
      base::one_of({"group", "batch", "none"})};
  base::Option<double> advantage_epsilon{
      this, "advantage_epsilon", 1e-4, "", "added to that standard deviation", base::at_least(0.0)};
  base::Option<bool> shuffle_rewards{this, "shuffle_rewards", false, "",
                                     "control experiment: rewards are shuffled among the samples of an iteration"};
  base::Option<std::optional<double>> missing_eos_penalty{
      this, "missing_eos_penalty", std::nullopt, "",
      "subtracted from the reward of a completion that was cut at its limit"};
  base::Option<double> gamma{this,
                             "gamma",
                             1.0,
                             "",
                             "discount of later rewards; ppo: for each token, process: for each step",
                             base::between(0.0, 1.0)};
  base::Option<double> lambda{
      this, "lambda", 0.95, "", "ppo: lambda of generalised advantage estimation (GAE)", base::between(0.0, 1.0)};
  base::Option<double> kl_coefficient{this,
                                      "kl_coefficient",
                                      0.05,
                                      "",
                                      "ppo: what a nat of KL divergence from the reference costs in reward",
                                      base::at_least(0.0)};
  base::Option<std::string> kl_estimator{
      this,
      "kl_estimator",
      "k1",
      "",
      "ppo: estimator of that KL divergence; k1 is the log-ratio, k3 is never negative",
      base::one_of({"k1", "k3"})};
  base::Option<bool> whiten_rewards{this, "whiten_rewards", false, "", "ppo: whiten rewards before GAE"};
  base::Option<std::optional<double>> value_clip{
      this,
      "value_clip",
      0.2,
      "",
      "ppo: how far a value may move from its old one before the loss clips it; null never clips",
      base::at_least(0.0)};
  // Losses on pairs and on marked answers.
  base::Option<double> label_smoothing{
      this,
      "label_smoothing",
      0.0,
      "",
      "losses on pairs: share of the pairs that are taken to be labelled the wrong way round",
      base::at_least(0.0),
      base::below(0.5)};
  base::Option<std::string> f_divergence_type{
      this,
      "f_divergence_type",
      "reverse_kl",
      "",
      "dpo: divergence whose derivative turns a log-ratio into a score",
      base::one_of({"reverse_kl", "forward_kl", "js_divergence", "alpha_divergence"})};
  base::Option<double> f_alpha_divergence_coef{this, "f_alpha_divergence_coef", 0.5, "",
                                               "dpo: alpha of alpha_divergence"};
  base::Option<std::optional<double>> ld_alpha{
      this,
      "ld_alpha",
      std::nullopt,
      "",
      "dpo: weight of the tokens of an answer beyond the length of the shorter answer",
      base::between(0.0, 1.0)};
  base::Option<double> discopop_tau{
      this, "discopop_tau", 0.05, "", "discopop: temperature of the blend", base::above(0.0)};
  base::Option<double> cpo_alpha{this, "cpo_alpha", 1.0, "",
                                 "cpo and simpo: weight of the likelihood of the chosen answer"};
  base::Option<double> simpo_gamma{this, "simpo_gamma", 0.5, "", "simpo: margin by which the chosen answer should win"};
  base::Option<double> desirable_weight{
      this, "desirable_weight", 1.0, "", "kto: weight of desirable answers", base::at_least(0.0)};
  base::Option<double> undesirable_weight{
      this, "undesirable_weight", 1.0, "", "kto: weight of undesirable answers", base::at_least(0.0)};
  base::Option<double> center_rewards_coefficient{this,
                                                  "center_rewards_coefficient",
                                                  0.0,
                                                  "",
                                                  "reward: how strongly scores are pulled to zero",
                                                  base::at_least(0.0)};
};

}  // namespace collimate::rlhf
