#pragma once

#include <map>
#include <string>

// The small model (small_task.h) of every architecture that differs from Llama in what it computes.
namespace collimate::test {

// Returns configs by name: biases, layer norm and learned positions; grouped queries with biases and the embedding as
// head; norms of heads and a window; experts; sinks and experts with biases; latent attention; positions counted from 2
// and another activation.
inline const std::map<std::string, std::string>& small_families() {
  static const std::map<std::string, std::string> configs = {
      {"gpt2", R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2",
    "vocab_size": 13, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_inner": 64, "n_positions": 32,
    "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "tie_word_embeddings": true, "eos_token_id": 1,
    "pad_token_id": 0, "bos_token_id": null})"},
      {"qwen2", R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2",
    "vocab_size": 13, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
    "intermediate_size": 64, "max_position_embeddings": 32, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
    "tie_word_embeddings": true, "pad_token_id": 0, "bos_token_id": null, "eos_token_id": 1, "hidden_act": "silu"})"},
      {"qwen3", R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
    "vocab_size": 13, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
    "head_dim": 16, "intermediate_size": 64, "max_position_embeddings": 32, "rms_norm_eps": 1e-6,
    "use_sliding_window": true, "sliding_window": 5, "max_window_layers": 1,
    "tie_word_embeddings": true, "pad_token_id": 0, "bos_token_id": null, "eos_token_id": 1, "hidden_act": "silu"})"},
      {"mixtral", R"({"architectures": ["MixtralForCausalLM"], "model_type": "mixtral",
    "vocab_size": 13, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
    "intermediate_size": 24, "num_local_experts": 6, "num_experts_per_tok": 2, "max_position_embeddings": 32,
    "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": true, "pad_token_id": 0,
    "bos_token_id": null, "eos_token_id": 1, "hidden_act": "silu"})"},
      {"qwen2_moe", R"({"architectures": ["Qwen2MoeForCausalLM"], "model_type": "qwen2_moe",
    "vocab_size": 13, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
    "intermediate_size": 64, "moe_intermediate_size": 24, "shared_expert_intermediate_size": 16, "num_experts": 5,
    "num_experts_per_tok": 3, "max_position_embeddings": 32, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
    "tie_word_embeddings": true, "pad_token_id": 0, "bos_token_id": null, "eos_token_id": 1, "hidden_act": "silu"})"},
      {"deepseek_v3", R"({"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
    "vocab_size": 13, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2,
    "q_lora_rank": 20, "kv_lora_rank": 24, "qk_nope_head_dim": 12, "qk_rope_head_dim": 4, "v_head_dim": 20,
    "intermediate_size": 64, "moe_intermediate_size": 24, "n_routed_experts": 6, "n_shared_experts": 1, "n_group": 3,
    "topk_group": 2, "num_experts_per_tok": 2, "first_k_dense_replace": 1, "routed_scaling_factor": 1.5,
    "norm_topk_prob": true, "max_position_embeddings": 32, "rms_norm_eps": 1e-6, "tie_word_embeddings": true,
    "pad_token_id": 0, "bos_token_id": null, "eos_token_id": 1, "hidden_act": "silu"})"},
      {"gpt_oss", R"({"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss",
    "vocab_size": 13, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
    "head_dim": 16, "intermediate_size": 24, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 5,
    "rope_scaling": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 16, "truncate": false},
    "swiglu_limit": 0.5, "max_position_embeddings": 32, "tie_word_embeddings": true, "pad_token_id": 0,
    "bos_token_id": null, "eos_token_id": 1, "hidden_act": "silu"})"},
      {"gpt_neox", R"({"architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox",
    "vocab_size": 13, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
    "max_position_embeddings": 32, "rotary_pct": 0.5, "hidden_act": "gelu", "tie_word_embeddings": true,
    "eos_token_id": 1, "pad_token_id": 0, "bos_token_id": null})"},
      {"opt", R"({"architectures": ["OPTForCausalLM"], "model_type": "opt",
    "vocab_size": 13, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 64,
    "max_position_embeddings": 32, "word_embed_proj_dim": 32, "activation_function": "relu",
    "do_layer_norm_before": true, "tie_word_embeddings": true, "eos_token_id": 1, "pad_token_id": 0,
    "bos_token_id": null})"}};
  return configs;
}

}  // namespace collimate::test
