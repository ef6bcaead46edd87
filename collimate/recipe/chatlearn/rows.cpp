#include "collimate/recipe/chatlearn/rows.h"

#include <algorithm>
#include <array>

namespace collimate::recipe::chatlearn {
namespace {

using nlohmann::json;

// Says that another key decides.
json derived(const json&) { return json(json::value_t::discarded); }

json no_negative(const json& top_k) { return top_k.is_number() && top_k.get<double>() < 0 ? json(0) : top_k; }
json list_of_texts(const json& texts) { return texts.is_string() ? json(parts(texts.get<std::string>(), ';')) : texts; }
json bf16_where_true(const json& used) { return used == true ? json("bfloat16") : json(json::value_t::discarded); }
json type_by_name(const json& name) {
  if (name == "bf16" || name == "bfloat16") return "bfloat16";
  return name == "fp32" || name == "float32" ? json("float32") : json(json::value_t::discarded);
}
json recompute(const json& granularity) { return granularity.is_null() ? json("none") : granularity; }
json full_where_true(const json& used) { return used == true ? json("full") : json(json::value_t::discarded); }
json selective_where_true(const json& used) {
  return used == true ? json("selective") : json(json::value_t::discarded);
}
json optimizer_where_true(const json& used) {
  return used == true ? json("optimizer") : json(json::value_t::discarded);
}
json where_true(const json& used) { return used == true ? json(true) : json(json::value_t::discarded); }
json zero_for_null(const json& interval) { return interval.is_null() ? json(0) : interval; }

constexpr std::string_view kPlaced = "decides the placement";
constexpr std::string_view kOfFile = "config.json of the model's directory says it";
constexpr std::string_view kByTokens =
    "micro-batches are bounded in tokens, train.micro_batch_tokens, and change no result";
constexpr std::string_view kEngine = "a setting of another engine";
constexpr std::string_view kMoved = "weights move as the two layouts need, checked at each step";
constexpr std::string_view kFlow = "a flow of your own says it in its code: docs/how-to/own-flows.md";

constexpr std::array kRows = {
    Row{"environment", "platform pip py_modules working_dir excludes", "",
        "workers are threads or processes of this machine"},
    // length of the run, rows, batches
    Row{"runtime", "num_episode", "run.iterations", "", derived},
    Row{"runtime", "sample_per_episode", "rollout.prompts_per_iteration", "divided by the samples of a prompt",
        derived},
    Row{"runtime", "num_training_epoch", "train.ppo_epochs", "", derived},
    Row{"runtime", "train_global_batch_size", "train.samples_per_update", "", derived},
    Row{"runtime", "num_inference_per_prompt", "rollout.samples_per_prompt", "", derived},
    Row{"runtime", "train_micro_batch_size", "", kByTokens},
    Row{"runtime", "generation_batch_size", "rollout.max_batch_sequences", "", derived},
    Row{"runtime", "data_path", "data.train", "", derived},
    Row{"runtime", "eval_data_path", "data.eval", "", derived},
    Row{"runtime", "data_shuffle", "data.shuffle"},
    Row{"runtime", "data_ratio", "data.train", "weights of the files, in their order", derived},
    Row{"runtime", "data_rerank", "", "copies of a prompt are drawn side by side and share its keys and values"},
    Row{"runtime", "training_shuffle_mode", "", "rows of an iteration keep their order in each of train.ppo_epochs"},
    Row{"runtime", "seed", "run.seed"},
    // what is kept and shown
    Row{"runtime", "save_episode_interval", "run.save_every", "", zero_for_null},
    Row{"runtime", "eval_episode_interval", "run.evaluate_every"},
    Row{"runtime", "max_data_ckpt_nums", "run.keep_checkpoints"},
    Row{"runtime", "log_interval", "log.every"},
    Row{"runtime", "log_args_dict.enable_tensorboard", "log.tensorboard"},
    Row{"runtime", "log_args_dict.enable_wandb", "log.wandb"},
    Row{"runtime", "log_args_dict.*", "", "the run's directory has them: collimate train --output DIRECTORY"},
    Row{"runtime", "nsys profiler_dir", "log.profile", "a profile of the slowest iteration", where_true},
    Row{"runtime", "output_dir exp_name data_checkpoint_path log_config_file", "",
        "a run has one directory: collimate train --output DIRECTORY"},
    Row{"runtime", "enable_resume_training load_data_checkpoint_iteration consumed_samples", "",
        "a run goes on by itself with collimate train --resume auto"},
    Row{"runtime", "enable_eval_before_training", "", "held-out data is measured before and after every run"},
    Row{"runtime", "debug", "", "collimate check shows what the run would do"},
    // placement
    Row{"runtime", "colocation", "placement", kPlaced, derived},
    Row{"runtime", "cpu_schedule_strategy concurrent_setup", "",
        "models are set up at once, and rules sit in the host"},
    Row{"runtime", "policy_to_regroup_queue stream_data_loader_type use_rollout_manager", "",
        "rows go from model to model as they are made, in the run's own order"},
    Row{"runtime",
        "coalesced_buffer_mb concurrent_comm param_sync_comm_type param_sync_max_workers "
        "routed_expert_regrouping_comm_type "
        "free_sync_collective_group validate_param_sync bucket_size_mb_in_memory_manager",
        "", kMoved},
    Row{"runtime", "max_relay_episode relay_episode_offset max_replay_episode replay_episode_offset", "", kFlow},
    Row{"runtime", "eval_data_num_limit", "evaluation.examples"},
    Row{"runtime", "use_partial_rollout max_rollout_round rollout_ratio", "rollout.round_shares",
        "where use_partial_rollout is true; an iteration has as many samples as ever, with those that go on", derived},
    Row{"runtime", "mini_response_per_prompt", "rollout.round_min_samples",
        "where use_partial_rollout is true; one more, as ChatLearn releases a prompt beyond it", derived},
    Row{"runtime", "training_data_num_limit max_iteration_per_sample task_type", "", kFlow},
    Row{"runtime", "train_backend rollout_backend model_type raw_chat", "", "one engine trains and generates"},

    // any model
    Row{"model", "num_gpu num_device", "devices", kPlaced, derived},
    Row{"model", "num_cpu cpu_per_process", "", "rules sit in the host"},
    Row{"model", "gpu_per_process num_replica trainable", "placement", kPlaced, derived},
    Row{"rule", "num_cpu cpu_per_process num_gpu", "",
        "rewards that your code computes are those of reward: collimate help rewards"},
    Row{"model", "tensor_model_parallel_size", "tp", kPlaced, derived},
    Row{"model", "pipeline_model_parallel_size", "pp", kPlaced, derived},
    Row{"model", "expert_model_parallel_size moe_expert_model_parallel_size", "ep", kPlaced, derived},
    Row{"model", "context_parallel_size sp_size ulysses_sequence_parallel_size", "cp", kPlaced, derived},
    Row{"model", "zero_size fsdp_size", "zero", "stage 3 among the ranks that share no matrices", derived},
    Row{"model", "free_memory force_free_memory free_gpu_memory.offload_weights offload_weights", "placement",
        "residency: swap", derived},
    Row{"model",
        "free_grad_buffers offload_optimizer_states free_gpu_memory.free_grad_buffers "
        "free_gpu_memory.offload_optimizer_states",
        "", "they leave the device with the model's weights"},
    Row{"model", "load pretrain_or_model", "models.{}.path", "a Hugging Face directory"},
    Row{"model", "seed", "run.seed"},
    Row{"model", "generation_batch_size", "", "the engine fills its batches by itself"},
    Row{"model", "packing max_token_in_packing variable_seq_lengths micro_batch_size batch_size train_micro_batch_size",
        "", kByTokens},
    Row{"model", "bf16", "models.{}.compute", "", bf16_where_true},
    Row{"model", "dtype params_dtype", "models.{}.compute", "", type_by_name},
    Row{"model", "fp16", "", "models.NAME.compute is float32 or bfloat16"},
    Row{"model", "model_config_file config_dir args_dict", "",
        "keys of the model, which are read as if they stood beside its own"},
    Row{"model", "model_type", "", kOfFile},
    Row{"model", "sync_frequency", "", "weights are never old: placement.staleness says how far generation runs ahead"},
    Row{"model", "batch_generation.* use_dynamic_load_blance max_concurrent_per_engine", "", kEngine},
    Row{"model", "lora.lora_dim", "models.{}.lora.rank", "where lora.enable_lora is true", derived},
    Row{"model", "lora.lora_scaling", "models.{}.lora.alpha", "both divide it by the rank", derived},
    Row{"model", "lora.lora_dropout", "models.{}.lora.dropout", "where lora.enable_lora is true", derived},
    Row{"model", "lora.enable_lora", "models.{}.lora.rank", "", derived},
    Row{"model", "lora.*", "", "models.NAME.lora.targets names the layers"},
    Row{"model", "enable_thinking", "models.{}.chat_template_kwargs", "", derived},
    Row{"model", "num_inference_per_prompt n", "rollout.samples_per_prompt", "", derived},
    Row{"policy", "seq_length max_seq_len max_model_len", "rollout.prompt_tokens", "less the new tokens", derived},
    Row{"policy_trainer", "seq_length max_seq_len", "data.max_tokens", "of dpo", derived},
    Row{"model", "seq_length max_seq_len max_model_len", "", "rollout says how long prompts and completions are"},
    Row{"model", "prompt_key", "", "columns of an entry of data.train: docs/how-to/data.md"},
    Row{"model", "max_prompt_tokens_length", "", "of the model that generates alone"},
    Row{"model", "max_new_tokens max_response_tokens_length", "", "of the model that generates alone"},
    Row{"model", "new_token_limit", "", "rollout.completion_tokens always bounds a completion"},
    Row{"model", "init_shuffle_prompts", "", "data.shuffle reads the prompts in a new order in each epoch"},
    Row{"model", "trainer_engine", "recipe", "", derived},
    Row{"model", "loss_on_prompts", "", "the recipe says which tokens are trained; data.train_on of sft"},
    Row{"model",
        "num_layers hidden_size num_attention_heads ffn_hidden_size num_query_groups group_query_attention "
        "max_position_embeddings vocab_size make_vocab_size_divisible_by padded_vocab_size tokenizer tokenizer_type "
        "vocab_file merge_file tokenizer_model use_rotary_position_embeddings rotary_base swiglu normalization "
        "position_embedding_type add_position_embedding disable_bias_linear untie_embeddings_and_output_weights "
        "add_bias_linear no_position_embedding norm_epsilon layernorm_epsilon attention_dropout hidden_dropout "
        "init_method_std moe_grouped_gemm moe_token_dispatcher_type moe_router_topk num_experts trust_remote_code",
        "", kOfFile},
    Row{"model",
        "virtual_pipeline_model_parallel_size expert_tensor_parallel_size pipeline_model_parallel_layout "
        "decoder_first_pipeline_num_layers decoder_last_pipeline_num_layers moe_router_force_load_balancing "
        "megatron_model_cfg load_iteration gpu_memory_utilization swap_space block_size enforce_eager "
        "num_scheduler_steps preemption_mode sliding_window "
        "max_seq_len_to_capture vllm_load_format apply_replica_id_to_seed enable_stage_resume is_sync_mode "
        "prompt_logprobs use_beam_search vllm_prompt_key vllm_input_ids_key max_paddings max_context_len_to_capture "
        "meta_init groupgemm use_expandable_segments save_hf use_legacy_models "
        "adaptive_parallel_strategy_on_checkpoint use_checkpoint_opt_param_scheduler use_distributed_optimizer "
        "sequence_parallel no_load_optim no_load_rng no_load_scheduler finetune distributed_timeout_minutes "
        "gradient_accumulation_fusion empty_unused_memory_level calculate_per_token_loss distributed_backend "
        "log_interval log_num_zeros_in_grad log_timers_to_tensorboard tensorboard_log_interval num_workers "
        "DDP_impl use_flash_attn exit_on_missing_checkpoint inference_batch_times_seqlen_threshold eval_iters "
        "eval_interval save_interval no_save_optim save drop_last numerical_stable build_path",
        "", kEngine},

    // the model that generates
    Row{"policy", "temperature", "rollout.temperature"},
    Row{"policy", "max_new_tokens max_response_tokens_length", "rollout.completion_tokens"},
    Row{"policy", "max_prompt_tokens_length", "rollout.prompt_tokens"},
    Row{"policy", "top_p", "rollout.top_p"},
    Row{"policy", "top_k", "rollout.top_k", "", no_negative},
    Row{"policy", "min_p", "rollout.min_p"},
    Row{"policy", "presence_penalty", "rollout.presence_penalty"},
    Row{"policy", "frequency_penalty", "rollout.frequency_penalty"},
    Row{"policy", "repetition_penalty", "rollout.repetition_penalty"},
    Row{"policy", "ignore_eos", "rollout.ignore_eos"},
    Row{"policy", "stop_token_list", "rollout.stop", "", list_of_texts},
    Row{"policy", "eval_temperature", "evaluation.temperature"},
    Row{"policy", "eval_top_p", "evaluation.top_p"},
    Row{"policy", "eval_top_k", "evaluation.top_k", "", no_negative},
    Row{"policy", "eval_min_p", "evaluation.min_p"},
    Row{"policy", "eval_presence_penalty", "evaluation.presence_penalty"},
    Row{"policy", "eval_frequency_penalty", "evaluation.frequency_penalty"},
    Row{"policy", "eval_repetition_penalty", "evaluation.repetition_penalty"},
    Row{"policy", "max_num_batched_tokens", "rollout.max_batch_tokens"},
    Row{"policy", "generation_batch_size", "rollout.max_batch_sequences", "", derived},

    // the model that trains
    Row{"policy_trainer", "lr learning_rate optimizer.lr", "train.learning_rate"},
    Row{"policy_trainer", "min_lr optimizer.min_lr", "train.lr_minimum_ratio",
        "divided by the learning rate, with lr_decay_style: cosine", derived},
    Row{"policy_trainer", "lr_decay_style", "train.lr_schedule", "cosine_with_min where min_lr is above 0", derived},
    Row{"policy_trainer", "lr_warmup_iters optimizer.lr_warmup_iters", "train.warmup_updates"},
    Row{"policy_trainer", "lr_decay_iters train_iters", "", "the schedule ends with the run"},
    Row{"policy_trainer", "clip_grad grad_clip optimizer.clip_grad", "train.max_grad_norm"},
    Row{"policy_trainer", "weight_decay optimizer.weight_decay", "train.weight_decay"},
    Row{"policy_trainer", "adam_beta1 optimizer.adam_beta1", "train.adam_beta1"},
    Row{"policy_trainer", "adam_beta2 optimizer.adam_beta2", "train.adam_beta2"},
    Row{"policy_trainer", "adam_eps", "train.adam_epsilon"},
    Row{"policy_trainer", "recompute_granularity", "train.recompute", "", recompute},
    Row{"policy_trainer", "gradient_checkpointing", "train.recompute", "full where it is true", full_where_true},
    Row{"policy_trainer", "recompute_activations", "train.recompute", "selective where it is true",
        selective_where_true},
    Row{"policy_trainer", "recompute_method recompute_num_layers recompute_modules", "",
        "train.recompute says it for all layers"},
    Row{"policy_trainer", "optimizer_offload", "train.offload", "", optimizer_where_true},
    Row{"policy_trainer", "pos_clip_ratio positive_clip_ratio", "algorithm.epsilon_high"},
    Row{"policy_trainer", "neg_clip_ratio negative_clip_ratio cliprange", "algorithm.epsilon"},
    Row{"policy_trainer", "diff_clip_ratio", "algorithm.log_ratio_max"},
    Row{"policy_trainer", "final_clip_ratio", "algorithm.token_loss_limit"},
    Row{"policy_trainer", "entropy_coef", "algorithm.entropy_coefficient"},
    Row{"policy_trainer", "kl_coef", "algorithm.beta", "of grpo", derived},
    Row{"policy_trainer", "use_group_sequence_policy", "algorithm.importance_sampling_level",
        "sequence where it is true", [](const json& used) { return used == true ? json("sequence") : json("token"); }},
    Row{"policy_trainer", "dpo_weight", "algorithm.beta", "of dpo and online_dpo", derived},
    Row{"policy_trainer", "use_ipo", "algorithm.loss_type", "ipo where it is true, of dpo", derived},
    Row{"policy_trainer", "label_smoothing", "algorithm.label_smoothing"},
    Row{"policy_trainer", "train_to_compare_num_responses", "rollout.samples_per_prompt", "", derived},
    Row{"policy_trainer", "clamp_dpo_logprobs clamp_dpo_logprobs_min clamp_dpo_logprobs_max", "",
        "losses are finite without it"},
    Row{"policy_trainer", "gamma", "algorithm.gamma"},
    Row{"policy_trainer", "lam", "algorithm.lambda"},
    // the value model that trains, and what rewards come to
    Row{"value_trainer", "lr learning_rate optimizer.lr", "train.value_learning_rate"},
    Row{"value_trainer", "cliprange_value", "algorithm.value_clip"},
    Row{"value_trainer", "clipped_value_only", "", "the larger of both losses, as where it is 0"},
    Row{"model", "gamma", "algorithm.gamma"},
    Row{"model", "lam", "algorithm.lambda"},
    Row{"model", "cliprange", "algorithm.epsilon"},
    Row{"model", "cliprange_value", "algorithm.value_clip"},
    Row{"model", "init_kl_coef", "algorithm.kl_coefficient"},
    Row{"model", "fix_kl_coef", "algorithm.kl_target", "target where it is false", derived},
    Row{"model", "target", "algorithm.kl_target", "where fix_kl_coef is false", derived},
    Row{"model", "horizon", "algorithm.kl_horizon", "where fix_kl_coef is false", derived},
    Row{"model", "cliprange_reward", "algorithm.reward_clip"},
    Row{"model", "ngram_coef lm_coef math_coef raw_reward_coeff reward_bias scale_reward score_dimension", "",
        "reward lists rewards with their weights; algorithm.reward_scaling scales them"},
};

bool stands_in(std::string_view names, std::string_view name) {
  for (const std::string& each : parts(names, ' '))
    if (each == name || (each.ends_with('*') && name.starts_with(each.substr(0, each.size() - 1)))) return true;
  return false;
}

}  // namespace

std::vector<std::string> parts(std::string_view text, char divider) {
  std::vector<std::string> list;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(divider, begin), text.size());
    if (end > begin) list.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return list;
}

std::span<const Row> rows() { return kRows; }

const Row* find_row(std::string_view section, std::string_view name) {
  for (const std::string_view each : {section, std::string_view("model")}) {
    if (each == "model" && (section == "runtime" || section == "environment")) break;
    for (const Row& row : kRows)
      if (row.section == each && stands_in(row.names, name)) return &row;
  }
  return nullptr;
}

bool is_no(const json& value) { return value.is_null() || value == "" || value == false || value == json::array(); }

bool is_known(std::string_view name) {
  return std::ranges::any_of(kRows, [&](const Row& row) { return stands_in(row.names, name); });
}

}  // namespace collimate::recipe::chatlearn
