#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/option.h"
#include "collimate/base/section.h"
#include "collimate/generate/kv_cache_option.h"
#include "collimate/generate/sampling_options.h"
#include "collimate/generate/speculation_options.h"
#include "collimate/generate/step_options.h"
#include "collimate/model/lora.h"
#include "collimate/model/model.h"
#include "collimate/rlhf/modules/loading_options.h"
#include "collimate/rlhf/types/algorithm.h"
#include "collimate/train/optimizer.h"

// These are the config sections that modules read. Each option is declared once.
namespace collimate::rlhf {

struct LoraSection : base::Section {
  COLLIMATE_OPTION(int64_t, rank, 0, "",
                   "rank of the adapters, which are trained while the model's own weights stay as they are; where path "
                   "holds adapters these, by their own rank and scale; 0 trains all weights instead",
                   base::at_least(int64_t{0}));
  COLLIMATE_OPTION(double, alpha, model::LoraOptions().alpha, "", "what the adapters add is multiplied by alpha / rank",
                   base::above(0.0), base::only_with{"rank"});
  COLLIMATE_OPTION(bool, rslora, false, "", "multiply by alpha / sqrt(rank) instead (rsLoRA)", base::only_with{"rank"});
  COLLIMATE_OPTION(double, dropout, 0.0, "",
                   "training drops this share of each adapter's inputs; 0 where answers are drawn, whose log-probs "
                   "would not be those of training",
                   base::satisfying("at least 0 and less than 1", [](double x) { return x >= 0 && x < 1; }),
                   base::only_with{"rank"});
  COLLIMATE_OPTION(double, b_rate_ratio, 1.0, "",
                   "the learning rate of the adapters' B matrices is so many times that of all else; about 16 is LoRA+ "
                   "(Hayou et al. 2024)",
                   base::above(0.0), base::only_with{"rank"});
  COLLIMATE_OPTION(std::vector<std::string>, targets, model::LoraOptions().targets, "",
                   "linear layers of the blocks that get adapters, by the last part of their name (q_proj); all-linear "
                   "for all of them",
                   base::not_empty(), base::at_least_entries{1}, base::only_with{"rank"});
  COLLIMATE_OPTION(std::vector<std::string>, modules_to_save, {}, "",
                   "modules outside the blocks that are trained whole beside the adapters, by the last part of their "
                   "name: embed_tokens, lm_head",
                   base::not_empty(), base::only_with{"rank"});

  COLLIMATE_OPTION(bool, dora, false, "",
                   "adapters change the directions of the weights' rows, and the lengths of rows are trained too "
                   "(weight-decomposed adapters, Liu et al. 2024); without dropout, and with tp 1",
                   base::only_with{"rank"});

  // Returns the adapters that the section asks for. Throws InputError if another option is set and rank is not.
  model::LoraOptions resolved() const;
};

struct ModelOptions : base::Section {
  COLLIMATE_OPTION(
      std::string, path, "", "",
      "the model: a directory with config.json, safetensors and a tokenizer, one of PEFT adapters, which are merged "
      "into their model, or a hub name (org/model, org/model@REVISION) that is in the local cache");
  COLLIMATE_OPTION(bool, from_scratch, false, "",
                   "begin with random weights; path then needs only config.json and a tokenizer");
  COLLIMATE_OPTION(double, initializer_std, 0.02, "", "standard deviation of random weights", base::above(0.0),
                   base::only_with{"from_scratch"});
  ComputeOption compute{this};
  ReductionChunksOption reduction_chunks{this};
  LatentCacheOption latent_cache{this};
  ChatTemplateOption chat_template{this};
  ChatTemplateKwargsOption chat_template_kwargs{this};
  base::Nested<LoraSection> lora{this, "lora", "low-rank adapters (Hu et al. 2021) of a model that the recipe trains"};
};

struct RolloutOptions : generate::SamplingOptions {
  RolloutOptions() : SamplingOptions(generate::SamplingParams().temperature, false) {}

  COLLIMATE_OPTION(int64_t, prompts_per_iteration, 64, "prompts", "how many prompts an iteration has",
                   base::at_least(int64_t{1}));
  COLLIMATE_OPTION(int64_t, samples_per_prompt, 8, "samples", "how many completions are drawn for each prompt",
                   base::at_least(int64_t{1}));
  COLLIMATE_OPTION(
      bool, replace_equal_groups, false, "",
      "draw new prompts in place of those whose samples all have the same reward (dynamic sampling, DAPO)");
  COLLIMATE_OPTION(
      int64_t, replace_limit, 10, "",
      "replace_equal_groups: the run stops where an iteration would draw more than so many times its samples",
      base::at_least(int64_t{1}), base::only_with{"replace_equal_groups"});
  COLLIMATE_OPTION(
      std::vector<double>, round_shares, {}, "",
      "partial rollouts: share of completion_tokens that a sample may draw in its first iteration, in its "
      "second, and so on, together 1. A sample that is not finished then goes on in the next iteration, by "
      "the weights of that one. [] draws each sample in one iteration",
      base::above(0.0));
  COLLIMATE_OPTION(int64_t, round_min_samples, 0, "samples",
                   "round_shares: so many samples of a prompt have to be finished before any of them is trained; the "
                   "others follow as they finish. 0: all of them",
                   base::at_least(int64_t{0}),
                   base::only_with{"round_shares", [](const nlohmann::json& shares) { return !shares.empty(); }});
  COLLIMATE_OPTION(int64_t, prompt_tokens, 512, "tokens",
                   "the longest prompt; data.long_rows says what happens to longer ones", base::at_least(int64_t{1}));
  COLLIMATE_OPTION(int64_t, completion_tokens, 512, "tokens", "the longest completion; it is cut there",
                   base::at_least(int64_t{1}));
  generate::BatchTokensOption max_batch_tokens{this};
  generate::BatchSequencesOption max_batch_sequences{this, 512};
  generate::CacheBlocksOption cache_blocks{this};
  generate::KvCacheOption kv_cache_dtype{this};
  generate::SpeculationOptions speculation{this};

  // Returns how many tokens a completion may have after its first iteration, its second, and so on, of which the last
  // is completion_tokens; nothing where each sample is drawn in one iteration. Throws InputError for shares that are
  // not 1 together, or of which one is less than a token.
  std::vector<int64_t> round_limits() const;
};

// The section `algorithm`, in which loss_type and advantage may be the names in the lists of losses and of advantages.
struct AlgorithmSection : AlgorithmOptions {
  AlgorithmSection();
};

struct TrainOptions : base::Section {
  COLLIMATE_OPTION(int64_t, samples_per_update, 0, "rows",
                   "rows of one optimizer step; 0 takes all samples of the iteration, or 32 rows of the data (64 of "
                   "pairs, which have two rows)",
                   base::at_least(int64_t{0}));
  COLLIMATE_OPTION(int64_t, ppo_epochs, 1, "epochs",
                   "how often the rows of an iteration are trained on; passes over the data are run.epochs",
                   base::at_least(int64_t{1}));
  COLLIMATE_OPTION(
      std::optional<double>, learning_rate, std::nullopt, "",
      "peak learning rate of AdamW; null takes the recipe's: sft and distill 2e-5, reward 1e-5, others 1e-6 (defaults "
      "and examples of TRL 0.19 and verl 0.4), and ten times as much with LoRA (Schulman et al. 2025)",
      base::at_least(0.0));
  COLLIMATE_OPTION(double, value_learning_rate, 0.0, "", "ppo: learning rate of the value model; 0 takes learning_rate",
                   base::at_least(0.0));
  COLLIMATE_OPTION(std::string, lr_schedule, "constant", "", "how the learning rate changes over the updates",
                   base::one_of({"constant", "linear", "cosine", "cosine_with_min"}));
  COLLIMATE_OPTION(double, lr_minimum_ratio, 0.1, "", "cosine_with_min: the lowest rate as a share of the peak",
                   base::between(0.0, 1.0), base::only_with{"lr_schedule", [](const nlohmann::json& schedule) {
                                                              return schedule == "cosine_with_min";
                                                            }});
  COLLIMATE_OPTION(int64_t, warmup_updates, 0, "updates",
                   "updates over which the learning rate rises from 0 to its peak", base::at_least(int64_t{0}));
  COLLIMATE_OPTION(double, weight_decay, train::AdamOptions().weight_decay, "",
                   "decoupled weight decay; biases and norms have none", base::at_least(0.0));
  COLLIMATE_OPTION(double, adam_beta1, train::AdamOptions().beta1, "", "decay of AdamW's first moment",
                   base::between(0.0, 1.0));
  COLLIMATE_OPTION(double, adam_beta2, train::AdamOptions().beta2, "", "decay of AdamW's second moment",
                   base::between(0.0, 1.0));
  COLLIMATE_OPTION(double, adam_epsilon, train::AdamOptions().epsilon, "", "added to the root of AdamW's second moment",
                   base::at_least(0.0));
  COLLIMATE_OPTION(double, max_grad_norm, 1.0, "", "a gradient with a larger norm is scaled down to it; 0 never scales",
                   base::at_least(0.0));
  COLLIMATE_OPTION(double, ema, 0.0, "",
                   "decay of an exponential moving average of the trained weights, which is saved as a model of its "
                   "own, model-ema/, beside model/ (DeepSpeed-Chat: 0.992); not of a value model; 0 for none",
                   base::satisfying("at least 0 and below 1", [](double d) { return d >= 0 && d < 1; }));
  COLLIMATE_OPTION(double, ptx_weight, 27.8, "",
                   "with data.ptx: the weight of the mean negative log-prob of its tokens in the loss of each update "
                   "(Ouyang et al. 2022)",
                   base::at_least(0.0));
  COLLIMATE_OPTION(std::optional<int64_t>, micro_batch_tokens, std::nullopt, "tokens",
                   "most tokens of one forward and backward pass, which bounds memory and changes no result; null "
                   "takes 2048 for samples, whose prompts are shared, else 1024",
                   base::at_least(int64_t{1}));
  COLLIMATE_OPTION(std::string, recompute, "none", "",
                   "activations that backward computes again to save memory: none, those of attention and of MLPs, "
                   "which cost little time (selective), or all of them (full)",
                   base::one_of({"none", "selective", "full"}), base::outside_hash{});
  COLLIMATE_OPTION(std::string, offload, "none", "",
                   "what lies in a file (run.swap_directory) but for the time of its use: nothing (none), or the "
                   "optimizer's two numbers of each weight (optimizer)",
                   base::one_of({"none", "optimizer"}), base::outside_hash{});
  COLLIMATE_OPTION(
      std::optional<double>, router_aux_loss_coef, std::nullopt, "",
      "mixtures of experts: weight of the loss that spreads tokens over experts; null takes the model's own",
      base::at_least(0.0));
  COLLIMATE_OPTION(double, router_z_loss_coef, 0.0, "",
                   "mixtures of experts: weight of the loss that keeps a router's logits small", base::at_least(0.0));
  COLLIMATE_OPTION(std::string, router_replay, "compare", "",
                   "mixtures of experts: what is done with the experts that routers chose in rollouts: nothing, which "
                   "records none (none), count where training's differ (compare), or train through them too (rollout: "
                   "rollout routing replay, R3)",
                   base::one_of({"none", "compare", "rollout"}));
  COLLIMATE_OPTION(double, mismatch_limit, 0.0, "nats",
                   "the run stops when a token's log-prob in training differs by more from the one at sampling; 0 "
                   "allows no difference",
                   base::at_least(0.0));
  COLLIMATE_OPTION(bool, mismatch_check, true, "",
                   "with several updates per iteration: compare the log-probs of all tokens before the first one, "
                   "which takes one more forward pass");
  COLLIMATE_OPTION(std::string, export_dtype, "float32", "",
                   "number type of the model that the run leaves, not of its checkpoints: bfloat16 has half of the "
                   "bytes and rounds, so that eval gives other numbers than the run; auto takes bfloat16 where all "
                   "weights that the run began from are",
                   base::one_of({"float32", "bfloat16", "auto"}), base::outside_hash{});
};

// Returns the most tokens of one micro-batch, of a trainer whose losses read `loss_rows` or, with "", of a scorer.
int64_t micro_batch_tokens(const TrainOptions& train, const std::string& loss_rows = "");

// Returns which activations backward computes again, as the options ask, or all if the placement asks (`by_layout`).
model::Recompute recompute_of(const TrainOptions& train, bool by_layout);

// Returns whether the optimizer's numbers are off the device between updates, because the options ask for it or, with
// `by_layout`, the placement does.
bool offloads_optimizer(const TrainOptions& train, bool by_layout);

// Returns the options of `train` that a trainer with this head and losses on these rows reads, without those that every
// trainer reads.
std::vector<std::string> train_options(const std::string& head, const std::string& loss_rows);

}  // namespace collimate::rlhf
