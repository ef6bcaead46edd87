#include "collimate/recipe/other_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "collimate/recipe/config.h"

namespace collimate::recipe {
namespace {

// TRL 0.19's config classes, verl 0.4's trainer configs, LLaMA-Factory 0.9's and OpenRLHF 0.8's arguments.
constexpr OtherName kNames[] = {
    {"epochs", "train.ppo_epochs", "passes over an iteration's rows; run.epochs are passes over the data"},
    {"per_device_train_batch_size", "train.samples_per_update", "rows of an optimizer step on all devices together"},
    {"gradient_accumulation_steps", "train.samples_per_update",
     "rows of an optimizer step; train.micro_batch_tokens bounds the memory of a pass"},
    {"train_batch_size", "train.samples_per_update"},
    {"ppo_mini_batch_size", "train.samples_per_update", "samples, not prompts"},
    {"mini_batch_size", "train.samples_per_update"},
    {"per_device_eval_batch_size", "train.micro_batch_tokens", "tokens of a pass, also in an evaluation"},
    {"ppo_micro_batch_size_per_gpu", "train.micro_batch_tokens", "tokens, not rows"},
    {"ppo_max_token_len_per_gpu", "train.micro_batch_tokens"},
    {"micro_train_batch_size", "train.micro_batch_tokens", "tokens, not rows"},
    {"num_train_epochs", "run.epochs"},
    {"total_epochs", "run.epochs"},
    {"max_epochs", "run.epochs"},
    {"num_episodes", "run.epochs"},
    {"max_steps", "run.iterations"},
    {"total_training_steps", "run.iterations"},
    {"num_iterations", "train.ppo_epochs"},
    {"num_ppo_epochs", "train.ppo_epochs"},
    {"lr", "train.learning_rate"},
    {"actor_learning_rate", "train.learning_rate"},
    {"critic_learning_rate", "train.value_learning_rate"},
    {"lr_scheduler_type", "train.lr_schedule"},
    {"lr_scheduler", "train.lr_schedule"},
    {"warmup_steps", "train.warmup_updates"},
    {"lr_warmup_steps", "train.warmup_updates"},
    {"warmup_ratio", "train.warmup_updates", "updates, not a share of them"},
    {"lr_warmup_steps_ratio", "train.warmup_updates", "updates, not a share of them"},
    {"grad_clip", "train.max_grad_norm"},
    {"clip_grad", "train.max_grad_norm"},
    {"adam_betas", "train.adam_beta1", "and train.adam_beta2"},
    {"gradient_checkpointing", "train.recompute", "full in the place of true"},
    {"enable_gradient_checkpointing", "train.recompute", "full in the place of true"},
    {"num_generations", "rollout.samples_per_prompt"},
    {"n", "rollout.samples_per_prompt"},
    {"n_samples_per_prompt", "rollout.samples_per_prompt"},
    {"rollout_batch_size", "rollout.prompts_per_iteration"},
    {"max_prompt_length", "rollout.prompt_tokens"},
    {"prompt_max_len", "rollout.prompt_tokens"},
    {"max_completion_length", "rollout.completion_tokens"},
    {"max_response_length", "rollout.completion_tokens"},
    {"response_length", "rollout.completion_tokens"},
    {"generate_max_len", "rollout.completion_tokens"},
    {"max_new_tokens", "rollout.completion_tokens"},
    {"max_length", "data.max_tokens"},
    {"max_seq_length", "data.max_tokens"},
    {"cutoff_len", "data.max_tokens"},
    {"max_len", "data.max_tokens"},
    {"filter_overlong_prompts", "data.long_rows", "drop in the place of true"},
    {"truncation", "data.long_rows"},
    {"kl_coef", "algorithm.beta", "of grpo's loss; algorithm.kl_coefficient is ppo's penalty in the reward"},
    {"init_kl_coef", "algorithm.kl_coefficient"},
    {"kl_loss_coef", "algorithm.beta"},
    {"pref_beta", "algorithm.beta"},
    {"pref_loss", "algorithm.loss_type"},
    {"cliprange", "algorithm.epsilon"},
    {"clip_ratio", "algorithm.epsilon"},
    {"clip_ratio_high", "algorithm.epsilon_high"},
    {"cliprange_value", "algorithm.value_clip"},
    {"entropy_coeff", "algorithm.entropy_coefficient"},
    {"adv_estimator", "algorithm.advantage"},
    {"advantage_estimator", "algorithm.advantage"},
    {"lam", "algorithm.lambda"},
    {"model_name_or_path", "models.policy.path"},
    {"pretrain", "models.policy.path"},
    {"sft_model_path", "models.policy.path"},
    {"reward_model_path", "models.reward.path"},
    {"reward_model", "models.reward.path"},
    {"reward_pretrain", "models.reward.path"},
    {"ref_model", "models.reference.path"},
    {"torch_dtype", "models.policy.compute"},
    {"dtype", "models.policy.compute"},
    {"bf16", "models.policy.compute", "bfloat16 in the place of true"},
    {"fp16", "models.policy.compute", "bfloat16, as there is no float16"},
    {"template", "models.policy.chat_template"},
    {"lora_rank", "models.policy.lora.rank"},
    {"lora_r", "models.policy.lora.rank"},
    {"lora_alpha", "models.policy.lora.alpha"},
    {"lora_target", "models.policy.lora.targets"},
    {"lora_target_modules", "models.policy.lora.targets"},
    {"target_modules", "models.policy.lora.targets"},
    {"use_rslora", "models.policy.lora.rslora"},
    {"finetuning_type", "models.policy.lora.rank", "0 trains all weights"},
    {"stage", "recipe"},
    {"dataset", "data.train"},
    {"dataset_name", "data.train", "a file, not a name on a hub"},
    {"prompt_data", "data.train"},
    {"train_files", "data.train"},
    {"eval_dataset", "data.eval"},
    {"val_files", "data.eval"},
    {"train_on_prompt", "data.train_on", "all_tokens in the place of true"},
    {"assistant_only_loss", "data.train_on", "assistant_turns in the place of true"},
    {"completion_only_loss", "data.train_on"},
    {"reward_funcs", "reward"},
    {"output_dir", "--output", "an option of the command"},
    {"default_local_dir", "--output", "an option of the command"},
    {"resume_from_checkpoint", "--resume", "an option of the command"},
    {"save_steps", "run.save_every", "iterations"},
    {"save_freq", "run.save_every", "iterations"},
    {"save_total_limit", "run.keep_checkpoints"},
    {"eval_steps", "run.evaluate_every", "iterations"},
    {"test_freq", "run.evaluate_every", "iterations"},
    {"report_to", "log.tensorboard", "true for TensorBoard; log.wandb for Weights & Biases"},
    {"logger", "log.tensorboard", "true for TensorBoard; log.wandb for Weights & Biases"},
    {"n_gpus_per_node", "devices"},
    {"nproc_per_node", "devices"},
};

}  // namespace

std::span<const OtherName> other_names() { return kNames; }

std::string remedy_for_name(const std::string& name) {
  const auto* found = std::ranges::find_if(kNames, [&](const OtherName& other) { return other.name == name; });
  if (found == std::end(kNames)) return "";
  return fmt::format("\"{}\"{}{}", found->key, *found->note == 0 ? "" : ": ", found->note);
}

std::string Config::section_remedy(const std::string& key) const { return remedy_for_name(key); }

}  // namespace collimate::recipe
