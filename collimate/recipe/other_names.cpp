#include "collimate/recipe/other_names.h"

#include <fmt/ranges.h>

#include <set>
#include <string_view>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/recipe/config.h"

namespace collimate::recipe {
namespace {

// TRL 0.19's config classes, verl 0.4's trainer configs, LLaMA-Factory 0.9's and OpenRLHF 0.8's arguments.
constexpr OtherName kNames[] = {
    {"epochs", "", "train.ppo_epochs", "passes over an iteration's rows; run.epochs are passes over the data"},
    {"per_device_train_batch_size", "TRL, LLaMA-Factory", "train.samples_per_update",
     "rows of an optimizer step on all devices together"},
    {"gradient_accumulation_steps", "TRL, LLaMA-Factory", "train.samples_per_update",
     "rows of an optimizer step; train.micro_batch_tokens bounds the memory of a pass"},
    {"train_batch_size", "verl, OpenRLHF", "train.samples_per_update",
     "rows of an optimizer step; verl's prompts of an iteration are rollout.prompts_per_iteration"},
    {"ppo_mini_batch_size", "verl", "train.samples_per_update", "samples, not prompts"},
    {"mini_batch_size", "TRL", "train.samples_per_update"},
    {"per_device_eval_batch_size", "TRL, LLaMA-Factory", "train.micro_batch_tokens",
     "tokens of a pass, also in an evaluation"},
    {"ppo_micro_batch_size_per_gpu", "verl", "train.micro_batch_tokens", "tokens, not rows"},
    {"ppo_max_token_len_per_gpu", "verl", "train.micro_batch_tokens"},
    {"micro_train_batch_size", "OpenRLHF", "train.micro_batch_tokens", "tokens, not rows"},
    {"num_train_epochs", "TRL, LLaMA-Factory", "run.epochs"},
    {"total_epochs", "verl", "run.epochs"},
    {"max_epochs", "OpenRLHF", "run.epochs"},
    {"num_episodes", "OpenRLHF", "run.epochs"},
    {"max_steps", "TRL, LLaMA-Factory", "run.iterations"},
    {"total_training_steps", "verl", "run.iterations"},
    {"num_iterations", "TRL", "train.ppo_epochs"},
    {"num_ppo_epochs", "TRL", "train.ppo_epochs"},
    {"lr", "verl", "train.learning_rate"},
    {"critic.optim.lr", "verl", "train.value_learning_rate"},
    {"optim", "TRL, LLaMA-Factory", "", "the optimizer is AdamW"},
    {"actor_learning_rate", "OpenRLHF", "train.learning_rate"},
    {"critic_learning_rate", "OpenRLHF", "train.value_learning_rate"},
    {"lr_scheduler_type", "TRL, LLaMA-Factory", "train.lr_schedule"},
    {"lr_scheduler", "OpenRLHF", "train.lr_schedule"},
    {"warmup_steps", "TRL, LLaMA-Factory", "train.warmup_updates"},
    {"lr_warmup_steps", "verl", "train.warmup_updates"},
    {"warmup_ratio", "TRL, LLaMA-Factory", "train.warmup_updates", "updates, not a share of them"},
    {"lr_warmup_steps_ratio", "verl", "train.warmup_updates", "updates, not a share of them"},
    {"grad_clip", "verl", "train.max_grad_norm"},
    {"clip_grad", "verl", "train.max_grad_norm"},
    {"adam_betas", "OpenRLHF", "train.adam_beta1", "and train.adam_beta2"},
    {"aux_loss_coef", "OpenRLHF", "train.router_aux_loss_coef"},
    {"moe_aux_loss_coef", "LLaMA-Factory", "train.router_aux_loss_coef"},
    {"gradient_checkpointing", "TRL, LLaMA-Factory, OpenRLHF", "train.recompute", "full instead of true"},
    {"enable_gradient_checkpointing", "verl", "train.recompute", "full instead of true"},
    {"num_generations", "TRL", "rollout.samples_per_prompt"},
    {"n", "verl", "rollout.samples_per_prompt"},
    {"n_samples_per_prompt", "OpenRLHF", "rollout.samples_per_prompt"},
    {"rollout_batch_size", "OpenRLHF", "rollout.prompts_per_iteration"},
    {"max_prompt_length", "TRL, verl", "rollout.prompt_tokens"},
    {"prompt_max_len", "OpenRLHF", "rollout.prompt_tokens"},
    {"max_completion_length", "TRL", "rollout.completion_tokens"},
    {"max_response_length", "verl", "rollout.completion_tokens"},
    {"response_length", "TRL", "rollout.completion_tokens"},
    {"generate_max_len", "OpenRLHF", "rollout.completion_tokens"},
    {"vllm_structured_outputs_regex", "TRL", "rollout.regex"},
    {"num_beams", "LLaMA-Factory", "",
     "rollouts are drawn, as their log-probs are trained; generate --num-beams searches"},
    {"max_new_tokens", "LLaMA-Factory", "rollout.completion_tokens"},
    {"max_length", "TRL, verl", "data.max_tokens"},
    {"max_seq_length", "TRL", "data.max_tokens"},
    {"cutoff_len", "LLaMA-Factory", "data.max_tokens"},
    {"max_len", "OpenRLHF", "data.max_tokens"},
    {"filter_overlong_prompts", "verl", "data.long_rows", "drop instead of true"},
    {"truncation", "verl", "data.long_rows"},
    {"kl_coef", "TRL", "algorithm.beta", "of grpo's loss; algorithm.kl_coefficient is ppo's penalty in the reward"},
    {"kl_ctrl.kl_coef", "verl", "algorithm.kl_coefficient", "of ppo's penalty in the reward"},
    {"use_kl_loss", "verl", "algorithm.beta", "above 0 in the place of true"},
    {"use_kl_in_reward", "verl", "algorithm.kl_coefficient", "above 0 in the place of true, with recipe: ppo"},
    {"init_kl_coef", "OpenRLHF", "algorithm.kl_coefficient"},
    {"kl_loss_coef", "verl", "algorithm.beta"},
    {"pref_beta", "LLaMA-Factory", "algorithm.beta"},
    {"pref_loss", "LLaMA-Factory", "algorithm.loss_type"},
    {"cliprange", "TRL", "algorithm.epsilon"},
    {"clip_ratio", "verl", "algorithm.epsilon"},
    {"clip_ratio_high", "verl", "algorithm.epsilon_high"},
    {"cliprange_value", "TRL, verl", "algorithm.value_clip"},
    {"entropy_coeff", "verl", "algorithm.entropy_coefficient"},
    {"adv_estimator", "verl", "algorithm.advantage"},
    {"advantage_estimator", "OpenRLHF", "algorithm.advantage"},
    {"lam", "TRL, verl", "algorithm.lambda"},
    {"model_name_or_path", "TRL, LLaMA-Factory", "models.policy.path"},
    {"model.path", "verl", "models.policy.path"},
    {"critic.model.path", "verl", "models.value.path"},
    {"reward_model.model.path", "verl", "models.reward.path"},
    {"pretrain", "OpenRLHF", "models.policy.path"},
    {"sft_model_path", "TRL", "models.policy.path"},
    {"reward_model_path", "TRL", "models.reward.path"},
    {"reward_model", "LLaMA-Factory", "models.reward.path"},
    {"reward_pretrain", "OpenRLHF", "models.reward.path"},
    {"ref_model", "LLaMA-Factory", "models.reference.path"},
    {"adapter_name_or_path", "LLaMA-Factory", "models.policy.path", "the adapters' directory"},
    {"lora_adapter_path", "verl", "models.policy.path", "the adapters' directory"},
    {"torch_dtype", "TRL", "models.policy.compute"},
    {"dtype", "verl", "models.policy.compute"},
    {"bf16", "TRL, LLaMA-Factory, OpenRLHF", "models.policy.compute", "bfloat16 instead of true"},
    {"fp16", "TRL, LLaMA-Factory", "models.policy.compute", "bfloat16, as there is no float16"},
    {"template", "LLaMA-Factory", "models.policy.chat_template"},
    {"chat_template_kwargs", "TRL", "models.policy.chat_template_kwargs"},
    {"lora_rank", "verl, LLaMA-Factory, OpenRLHF", "models.policy.lora.rank"},
    {"lora_r", "TRL", "models.policy.lora.rank"},
    {"lora_alpha", "TRL, verl, LLaMA-Factory, OpenRLHF", "models.policy.lora.alpha"},
    {"lora_target", "LLaMA-Factory", "models.policy.lora.targets"},
    {"lora_target_modules", "TRL", "models.policy.lora.targets"},
    {"target_modules", "verl", "models.policy.lora.targets"},
    {"use_rslora", "TRL, LLaMA-Factory", "models.policy.lora.rslora"},
    {"use_peft", "TRL", "models.policy.lora.rank", "above 0 in the place of true"},
    {"finetuning_type", "LLaMA-Factory", "models.policy.lora.rank", "0 trains all weights"},
    {"stage", "LLaMA-Factory", "recipe"},
    {"dataset", "LLaMA-Factory", "data.train"},
    {"dataset_name", "TRL", "data.train", "a file, not a name on a hub"},
    {"prompt_data", "OpenRLHF", "data.train"},
    {"train_files", "verl", "data.train"},
    {"eval_dataset", "LLaMA-Factory", "data.eval"},
    {"val_files", "verl", "data.eval"},
    {"val_size", "LLaMA-Factory", "data.val_size"},
    {"test_size", "Hugging Face datasets", "data.val_size"},
    {"val_set_size", "Axolotl", "data.val_size"},
    {"max_samples", "LLaMA-Factory", "",
     "all rows of data.train are read; evaluation.examples bounds those of data.eval"},
    {"packing", "TRL, LLaMA-Factory", "", "rows are always packed, and no row sees another"},
    {"train_on_prompt", "LLaMA-Factory", "data.train_on", "all_tokens instead of true"},
    {"assistant_only_loss", "TRL", "data.train_on", "assistant_turns instead of true"},
    {"completion_only_loss", "TRL", "data.train_on"},
    {"reward_funcs", "TRL", "reward"},
    {"output_dir", "TRL, LLaMA-Factory", "--output", "an option of the command"},
    {"default_local_dir", "verl", "--output", "an option of the command"},
    {"resume_from_checkpoint", "TRL, LLaMA-Factory", "--resume", "an option of the command"},
    {"save_steps", "TRL, LLaMA-Factory, OpenRLHF", "run.save_every", "iterations"},
    {"save_freq", "verl", "run.save_every", "iterations"},
    {"save_total_limit", "TRL, LLaMA-Factory", "run.keep_checkpoints"},
    {"eval_steps", "TRL, LLaMA-Factory, OpenRLHF", "run.evaluate_every", "iterations"},
    {"test_freq", "verl", "run.evaluate_every", "iterations"},
    {"eval_strategy", "TRL, LLaMA-Factory", "run.evaluate_every", "iterations; 0 measures before and after the run"},
    {"logging_steps", "TRL, LLaMA-Factory, OpenRLHF", "log.every", "iterations; metrics.jsonl has all of them"},
    {"report_to", "TRL, LLaMA-Factory", "log.tensorboard", "true for TensorBoard; log.wandb for Weights & Biases"},
    {"logger", "verl", "log.tensorboard", "true for TensorBoard; log.wandb for Weights & Biases"},
    {"n_gpus_per_node", "verl", "devices"},
    {"nproc_per_node", "torchrun", "devices"},
    {"tensor_model_parallel_size", "verl", "placement", "a group's layout has tp; auto lets the planner choose"},
    {"gpu_memory_utilization", "verl", "run.memory_budget", "MiB of each device; generation and training share it"},
    {"deepspeed", "TRL, LLaMA-Factory", "placement", "a group's layout has zero; auto lets the planner choose"},
};

// Paths of ours: of options, under which nothing is looked at, and of the sections that hold them.
struct KnownKeys {
  std::set<std::string> options, sections;
};

KnownKeys known_keys() {
  std::vector<base::OptionInfo> options;
  Config().describe_section("", options);
  KnownKeys known;
  for (const base::OptionInfo& option : options) {
    known.options.insert(option.path);
    for (size_t dot = option.path.find('.'); dot != std::string::npos; dot = option.path.find('.', dot + 1))
      known.sections.insert(option.path.substr(0, dot));
  }
  known.options.insert("models");  // by roles that a user names
  known.sections.erase("models");
  return known;
}

// Looks at what stands under a key that is not ours: its parts first, of which the names say more than its own.
void find_under(const base::ConfigNode& node, const std::string& section, const std::string& path,
                std::vector<std::string>& found) {
  const size_t before = found.size();
  for (size_t i = 0; i < node.keys.size(); ++i)
    find_under(node.children[i], section, base::join_path(path, node.keys[i]), found);
  if (found.size() > before) return;
  if (const std::string remedy = remedy_for_name(path); !remedy.empty())
    found.push_back(
        base::expectation(node.where, "a key of " + base::section_title(section), fmt::format("\"{}\"", path), remedy));
}

void find_names(const base::ConfigNode& node, const std::string& section, const KnownKeys& known,
                std::vector<std::string>& found) {
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const std::string path = base::join_path(section, node.keys[i]);
    if (known.sections.contains(path))
      find_names(node.children[i], path, known, found);
    else if (!known.options.contains(path))
      find_under(node.children[i], section, node.keys[i], found);
  }
}

}  // namespace

std::span<const OtherName> other_names() { return kNames; }

std::string other_names_table() {
  std::string table = "| their key | of | ours | note |\n|---|---|---|---|\n";
  for (const OtherName& other : kNames)
    if (*other.program != 0)
      table += fmt::format("| `{}` | {} | {} | {} |\n", other.name, other.program,
                           *other.key == 0 ? "–" : fmt::format("`{}`", other.key), other.note);
  return table;
}

std::string remedy_for_name(const std::string& path) {
  const OtherName* found = nullptr;
  for (const OtherName& other : kNames) {
    const bool ends = path == other.name || path.ends_with(std::string(".") + other.name);
    if (ends && (found == nullptr || std::string_view(other.name).size() > std::string_view(found->name).size()))
      found = &other;
  }
  if (found == nullptr) return "";
  if (*found->key == 0) return fmt::format("leaving it out: {}", found->note);
  return fmt::format("\"{}\"{}{}", found->key, *found->note == 0 ? "" : ": ", found->note);
}

void refuse_other_names(const base::ConfigNode& root) {
  std::vector<std::string> found;
  find_names(root, "", known_keys(), found);
  if (!found.empty()) throw base::InputError(fmt::format("{}", fmt::join(found, "\n")));
}

std::string Config::section_remedy(const std::string& key) const { return remedy_for_name(key); }

}  // namespace collimate::recipe
