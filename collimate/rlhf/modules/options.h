#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/option.h"
#include "collimate/base/section.h"
#include "collimate/generate/sampling_options.h"
#include "collimate/generate/speculation_options.h"
#include "collimate/model/lora.h"
#include "collimate/rlhf/modules/loading_options.h"
#include "collimate/rlhf/types/algorithm.h"
#include "collimate/train/optimizer.h"

// The config sections that modules read, each option declared once.
namespace collimate::rlhf {

struct LoraSection : base::Section {
  base::Option<int64_t> rank{this,
                             "rank",
                             0,
                             "",
                             "of the adapters that are trained beside the model's weights, which stay; 0 trains these",
                             base::at_least(int64_t{0})};
  base::Option<double> alpha{
      this, "alpha", model::LoraOptions().alpha, "", "what adapters add is scaled by alpha / rank", base::above(0.0)};
  base::Option<bool> rslora{this, "rslora", false, "", "scaled by alpha / sqrt(rank) instead"};
  base::Option<std::vector<std::string>> targets{
      this,
      "targets",
      model::LoraOptions().targets,
      "",
      "linear layers of the blocks that get adapters, by the last parts of their name (q_proj); all-linear for all",
      base::not_empty(),
      base::at_least_entries{1}};

  // InputError where one of the others is set and rank is not.
  model::LoraOptions resolved() const;
};

struct ModelOptions : base::Section {
  base::Option<std::string> path{this, "path", "", "", "model directory: config.json, safetensors, tokenizer"};
  base::Option<bool> from_scratch{this, "from_scratch", false, "",
                                  "start from random weights; path needs config.json and a tokenizer only"};
  base::Option<double> initializer_std{
      this, "initializer_std", 0.02, "", "standard deviation of random weights", base::above(0.0)};
  ComputeOption compute{this};
  ChatTemplateOption chat_template{this};
  base::Nested<LoraSection> lora{this, "lora", "low-rank adapters (Hu et al. 2021); of a model that the recipe trains"};
};

struct RolloutOptions : generate::SamplingOptions {
  RolloutOptions() : SamplingOptions(generate::SamplingParams().temperature, false) {}

  base::Option<int64_t> prompts_per_iteration{
      this, "prompts_per_iteration", 64, "prompts", "distinct prompts of one iteration", base::at_least(int64_t{1})};
  base::Option<int64_t> samples_per_prompt{
      this, "samples_per_prompt", 8, "samples", "completions drawn for each prompt", base::at_least(int64_t{1})};
  base::Option<int64_t> prompt_tokens{
      this, "prompt_tokens", 512, "tokens", "longest prompt; a longer one is an error", base::at_least(int64_t{1})};
  base::Option<int64_t> completion_tokens{this,     "completion_tokens",  512,
                                          "tokens", "longest completion", base::at_least(int64_t{1})};
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
  generate::SpeculationOptions speculation{this};
};

// The section `algorithm`: its constants with the names that the lists of losses and of advantages know.
struct AlgorithmSection : AlgorithmOptions {
  AlgorithmSection();
};

struct TrainOptions : base::Section {
  base::Option<int64_t> samples_per_update{this,
                                           "samples_per_update",
                                           0,
                                           "rows",
                                           "rows of one optimizer step; 0 for the whole iteration",
                                           base::at_least(int64_t{0})};
  base::Option<int64_t> ppo_epochs{
      this, "ppo_epochs", 1, "epochs", "passes over an iteration's rows", base::at_least(int64_t{1})};
  base::Option<std::optional<double>> learning_rate{
      this,
      "learning_rate",
      std::nullopt,
      "",
      "peak rate of AdamW; null: the recipe's, sft 2e-5, reward 1e-5, others 1e-6, and ten times that with LoRA",
      base::at_least(0.0)};
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
  base::Option<double> weight_decay{this,
                                    "weight_decay",
                                    train::AdamOptions().weight_decay,
                                    "",
                                    "decoupled; none on biases and norms",
                                    base::at_least(0.0)};
  base::Option<double> adam_beta1{this, "adam_beta1",   train::AdamOptions().beta1,
                                  "",   "first moment", base::between(0.0, 1.0)};
  base::Option<double> adam_beta2{this, "adam_beta2",    train::AdamOptions().beta2,
                                  "",   "second moment", base::between(0.0, 1.0)};
  base::Option<double> adam_epsilon{this,
                                    "adam_epsilon",
                                    train::AdamOptions().epsilon,
                                    "",
                                    "added to the root of the second moment",
                                    base::at_least(0.0)};
  base::Option<double> max_grad_norm{
      this, "max_grad_norm", 1.0, "", "clip the gradient's norm; 0 for none", base::at_least(0.0)};
  base::Option<std::optional<int64_t>> micro_batch_tokens{
      this,
      "micro_batch_tokens",
      std::nullopt,
      "tokens",
      "budget of one forward and backward; null: 2048 for samples, which share their prompts, else 1024",
      base::at_least(int64_t{1})};
  base::Option<std::string> recompute{
      this, "recompute", "none", "", "activations kept for backward", base::one_of({"none", "full"})};
  base::Option<double> mismatch_limit{
      this,
      "mismatch_limit",
      0.0,
      "nats",
      "stop when a token's log-prob in training differs by more from the one sampled: 0, at any difference",
      base::at_least(0.0)};
  base::Option<bool> mismatch_check{
      this, "mismatch_check", true, "",
      "with several updates an iteration: compare all its tokens before the first, by one more forward"};
};

// The budget of a trainer whose losses are on these rows, of a scorer where there are none.
int64_t micro_batch_tokens(const TrainOptions& train, const std::string& loss_rows = "");

// Names the options of `train` that a trainer with this head and losses on these rows reads and not every one does.
std::vector<std::string> train_options(const std::string& head, const std::string& loss_rows);

}  // namespace collimate::rlhf
