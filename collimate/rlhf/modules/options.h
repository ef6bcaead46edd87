#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "collimate/base/option.h"
#include "collimate/base/section.h"

// The config sections that modules read, each option declared once.
namespace collimate::rlhf {

struct ModelOptions : base::Section {
  base::Option<std::string> path{this, "path", "", "", "model directory: config.json, safetensors, tokenizer"};
  base::Option<bool> from_scratch{this, "from_scratch", false, "",
                                  "start from random weights; path needs config.json and a tokenizer only"};
  base::Option<double> initializer_std{
      this, "initializer_std", 0.02, "", "standard deviation of random weights", base::above(0.0)};
  base::Option<std::string> compute{
      this, "compute", "float32", "", "type of the operands of linear layers", base::one_of({"float32", "bfloat16"})};
  base::Option<std::string> chat_template{this,
                                          "chat_template",
                                          "auto",
                                          "",
                                          "how messages become text",
                                          base::one_of({"auto", "chatml", "plain", "user-bot"})};
};

struct RolloutOptions : base::Section {
  base::Option<int64_t> prompts_per_iteration{
      this, "prompts_per_iteration", 64, "prompts", "distinct prompts of one iteration", base::at_least(int64_t{1})};
  base::Option<int64_t> samples_per_prompt{
      this, "samples_per_prompt", 8, "samples", "completions drawn for each prompt", base::at_least(int64_t{1})};
  base::Option<int64_t> prompt_tokens{
      this, "prompt_tokens", 512, "tokens", "longest prompt; a longer one is an error", base::at_least(int64_t{1})};
  base::Option<int64_t> completion_tokens{this,     "completion_tokens",  512,
                                          "tokens", "longest completion", base::at_least(int64_t{1})};
  base::Option<double> temperature{
      this, "temperature", 1.0, "", "sampling temperature; also of the trained log-probs", base::above(0.0)};
  base::Option<double> top_p{this, "top_p", 1.0, "", "nucleus of this much probability", base::between(0.0, 1.0)};
  base::Option<int64_t> top_k{
      this, "top_k", 0, "tokens", "draw from the k most likely; 0 from all", base::at_least(int64_t{0})};
  base::Option<double> min_p{
      this, "min_p", 0.0, "", "leave out tokens below this part of the most likely one", base::between(0.0, 1.0)};
  base::Option<int64_t> max_batch_tokens{
      this, "max_batch_tokens", 2048, "tokens", "tokens of one generation step", base::at_least(int64_t{1})};
  base::Option<int64_t> max_batch_sequences{
      this, "max_batch_sequences", 512, "sequences", "sequences that decode together", base::at_least(int64_t{1})};
  base::Option<int64_t> cache_blocks{this,
                                     "cache_blocks",
                                     0,
                                     "blocks",
                                     "blocks of 16 tokens in the key-value cache; 0 for enough",
                                     base::at_least(int64_t{0})};
};

struct AlgorithmOptions : base::Section {
  base::Option<std::string> loss_type{
      this, "loss_type", "", "",
      "variant of the recipe's loss (grpo: grpo bnpo dr_grpo dapo cispo sapo; dpo: sigmoid hinge ipo …); "
      "empty for the recipe's own"};
  base::Option<std::string> importance_sampling_level{
      this, "importance_sampling_level",       "token",
      "",   "ratio of tokens or of sequences", base::one_of({"token", "sequence", "sequence_token"})};
  base::Option<double> epsilon{this, "epsilon", 0.2, "", "clip range of the ratio", base::at_least(0.0)};
  base::Option<std::optional<double>> epsilon_high{this, "epsilon_high", std::nullopt, "",
                                                   "upper clip range; default: epsilon"};
  base::Option<std::optional<double>> delta{this, "delta", std::nullopt, "",
                                            "upper bound of the ratio (two-sided clipping)"};
  base::Option<double> beta{
      this, "beta", 0.0, "", "grpo: weight of the KL in the loss; dpo: inverse temperature", base::at_least(0.0)};
  base::Option<bool> use_bias_correction_kl{this, "use_bias_correction_kl", false, "", "multiply the KL by the ratio"};
  base::Option<double> entropy_coefficient{this, "entropy_coefficient", 0.0, "", "weight of the entropy bonus"};
  base::Option<double> top_entropy_quantile{
      this, "top_entropy_quantile", 1.0, "", "train only this part of the tokens, by entropy", base::between(0.0, 1.0)};
  base::Option<std::string> scale_rewards{
      this, "scale_rewards", "group", "", "divide advantages by the std of", base::one_of({"group", "batch", "none"})};
  base::Option<double> advantage_epsilon{this, "advantage_epsilon", 1e-4, "", "added to that std", base::at_least(0.0)};
  base::Option<bool> shuffle_rewards{this, "shuffle_rewards", false, "",
                                     "control experiment: rewards permuted over an iteration's samples"};
  base::Option<double> label_smoothing{
      this, "label_smoothing", 0.0, "", "dpo: part of labels taken as wrong", base::between(0.0, 0.5)};
  base::Option<double> center_rewards_coefficient{this, "center_rewards_coefficient",     0.0,
                                                  "",   "reward: pull of scores to zero", base::at_least(0.0)};
  base::Option<double> gamma{this, "gamma", 1.0, "", "ppo: discount", base::between(0.0, 1.0)};
  base::Option<double> lambda{
      this, "lambda", 0.95, "", "ppo: of generalised advantage estimation", base::between(0.0, 1.0)};
  base::Option<double> kl_coefficient{
      this, "kl_coefficient", 0.05, "", "ppo: KL against the reference in the reward", base::at_least(0.0)};
  base::Option<bool> whiten_rewards{this, "whiten_rewards", false, "", "ppo: whiten rewards before GAE"};
  base::Option<double> value_clip{
      this, "value_clip", 0.2, "", "ppo: clip range of values; 0 for none", base::at_least(0.0)};
  base::Option<std::optional<double>> missing_eos_penalty{this, "missing_eos_penalty", std::nullopt, "",
                                                          "ppo: subtracted from rewards of completions without EOS"};
};

struct TrainOptions : base::Section {
  base::Option<int64_t> samples_per_update{this,
                                           "samples_per_update",
                                           0,
                                           "rows",
                                           "rows of one optimizer step; 0 for the whole iteration",
                                           base::at_least(int64_t{0})};
  base::Option<int64_t> epochs{
      this, "epochs", 1, "epochs", "passes over an iteration's samples", base::at_least(int64_t{1})};
  base::Option<double> learning_rate{this, "learning_rate", 1e-6, "", "peak rate of AdamW", base::at_least(0.0)};
  base::Option<double> value_learning_rate{
      this, "value_learning_rate", 0.0, "", "ppo: of the value model; 0 for learning_rate", base::at_least(0.0)};
  base::Option<std::string> lr_schedule{this,
                                        "lr_schedule",
                                        "constant",
                                        "",
                                        "shape of the rate over the updates",
                                        base::one_of({"constant", "linear", "cosine", "cosine_with_min"})};
  base::Option<double> lr_minimum_ratio{this, "lr_minimum_ratio",         0.1,
                                        "",   "floor of cosine_with_min", base::between(0.0, 1.0)};
  base::Option<int64_t> warmup_updates{this,      "warmup_updates",     0,
                                       "updates", "linear rise from 0", base::at_least(int64_t{0})};
  base::Option<double> weight_decay{
      this, "weight_decay", 0.0, "", "decoupled; none on biases and norms", base::at_least(0.0)};
  base::Option<double> adam_beta1{this, "adam_beta1", 0.9, "", "first moment", base::between(0.0, 1.0)};
  base::Option<double> adam_beta2{this, "adam_beta2", 0.999, "", "second moment", base::between(0.0, 1.0)};
  base::Option<double> adam_epsilon{
      this, "adam_epsilon", 1e-8, "", "added to the root of the second moment", base::at_least(0.0)};
  base::Option<double> max_grad_norm{
      this, "max_grad_norm", 1.0, "", "clip the gradient's norm; 0 for none", base::at_least(0.0)};
  base::Option<int64_t> micro_batch_tokens{
      this, "micro_batch_tokens", 2048, "tokens", "budget of one forward and backward", base::at_least(int64_t{1})};
  base::Option<std::string> recompute{
      this, "recompute", "none", "", "activations kept for backward", base::one_of({"none", "full"})};
  base::Option<double> mismatch_limit{this,
                                      "mismatch_limit",
                                      1e-4,
                                      "nats",
                                      "stop when a token's log-prob in training differs by more from the one sampled",
                                      base::above(0.0)};
};

}  // namespace collimate::rlhf
