"""The configs of make_families.py's cases: of tiny models of each family and kind of RoPE."""

BASE = {"vocab_size": 23, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 4, "intermediate_size": 24, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
        "hidden_act": "silu", "rope_theta": 100.0, "tie_word_embeddings": False}
LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
QWEN2 = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "use_sliding_window": False}
MISTRAL = {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": None}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
LONGROPE = {"type": "longrope", "short_factor": [1.0, 1.3], "long_factor": [1.5, 3.0]}
QWEN3 = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "use_sliding_window": False}
PHI3 = {"model_type": "phi3", "architectures": ["Phi3ForCausalLM"], "pad_token_id": 0}
GPT_NEO = {"model_type": "gpt_neo", "architectures": ["GPTNeoForCausalLM"], "vocab_size": 23, "hidden_size": 16,
           "num_layers": 2, "num_heads": 4, "intermediate_size": 24, "max_position_embeddings": 64, "window_size": 7,
           "attention_types": [[["global", "local"], 1]], "activation_function": "gelu_new"}
OPT = {"model_type": "opt", "architectures": ["OPTForCausalLM"], "vocab_size": 23, "hidden_size": 16,
       "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 24, "max_position_embeddings": 64,
       "word_embed_proj_dim": 16, "activation_function": "relu"}
NEOX = {"model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"], "vocab_size": 23, "hidden_size": 32,
        "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24, "max_position_embeddings": 64,
        "rotary_pct": 0.5, "rotary_emb_base": 100.0, "hidden_act": "gelu", "tie_word_embeddings": False}
GPTJ = {"model_type": "gptj", "architectures": ["GPTJForCausalLM"], "vocab_size": 23, "n_embd": 32, "n_layer": 2,
        "n_head": 4, "n_inner": 24, "n_positions": 64, "rotary_dim": 4, "activation_function": "gelu_new",
        "tie_word_embeddings": False}
BLOOM = {"model_type": "bloom", "architectures": ["BloomForCausalLM"], "vocab_size": 23, "hidden_size": 16,
         "n_layer": 2, "n_head": 4, "seq_length": 64, "layer_norm_epsilon": 1e-5}
GEMMA = {"model_type": "gemma", "architectures": ["GemmaForCausalLM"], "tie_word_embeddings": True,
         "hidden_act": "gelu_pytorch_tanh", "pad_token_id": 0}
GEMMA2 = GEMMA | {"model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "sliding_window": 9,
                  "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 9, "attn_logit_softcapping": 3.0,
                  "final_logit_softcapping": 5.0}
GEMMA3 = GEMMA | {"model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], "sliding_window": 9,
                  "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 9, "num_hidden_layers": 3,
                  "sliding_window_pattern": 3, "rope_local_base_freq": 30.0}
QWEN = {"model_type": "qwen", "architectures": ["QWenLMHeadModel"], "vocab_size": 23, "hidden_size": 16,
        "num_hidden_layers": 2, "num_attention_heads": 4, "kv_channels": 4, "intermediate_size": 48, "seq_length": 64,
        "layer_norm_epsilon": 1e-5, "rotary_emb_base": 100.0, "no_bias": True}
STARCODER2 = {"model_type": "starcoder2", "architectures": ["Starcoder2ForCausalLM"], "norm_epsilon": 1e-5,
              "hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": True, "sliding_window": None, "use_bias": True}
GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 23, "n_embd": 16, "n_layer": 2,
        "n_head": 4, "n_inner": 24, "n_positions": 64, "activation_function": "gelu_new"}
MIXTRAL = {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_local_experts": 4,
           "num_experts_per_tok": 2, "sliding_window": None}
QWEN2_MOE = {"model_type": "qwen2_moe", "architectures": ["Qwen2MoeForCausalLM"], "num_experts": 4,
             "num_experts_per_tok": 2, "moe_intermediate_size": 12, "shared_expert_intermediate_size": 20,
             "norm_topk_prob": False, "use_sliding_window": False}
QWEN2_MOE_WINDOWS = QWEN2_MOE | {"use_sliding_window": True, "sliding_window": 7, "num_hidden_layers": 4}
QWEN3_MOE = {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "num_experts": 5,
             "num_experts_per_tok": 3, "moe_intermediate_size": 12, "norm_topk_prob": True}
DOTS1 = {"model_type": "dots1", "architectures": ["Dots1ForCausalLM"], "n_routed_experts": 6, "n_shared_experts": 2,
         "num_experts_per_tok": 2, "moe_intermediate_size": 12, "first_k_dense_replace": 1, "norm_topk_prob": True,
         "n_group": 3, "topk_group": 2, "routed_scaling_factor": 1.5, "sliding_window": None, "max_window_layers": 2}
LATENT = {"num_key_value_heads": 4, "kv_lora_rank": 12, "q_lora_rank": 10, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
          "v_head_dim": 8, "n_routed_experts": 6, "n_shared_experts": 2, "num_experts_per_tok": 2,
          "moe_intermediate_size": 12, "first_k_dense_replace": 1, "n_group": 3, "topk_group": 2,
          "routed_scaling_factor": 1.5}
DEEPSEEK_V2 = LATENT | {"model_type": "deepseek_v2", "architectures": ["DeepseekV2ForCausalLM"],
                        "topk_method": "group_limited_greedy", "norm_topk_prob": False}
DEEPSEEK_V3 = LATENT | {"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "norm_topk_prob": True,
                        "num_nextn_predict_layers": 0}
DEEPSEEK_YARN = {"rope_scaling": YARN | {"mscale": 0.707, "mscale_all_dim": 0.707, "beta_fast": 4}}
MOONLIGHT = DEEPSEEK_V3 | {"q_lora_rank": None, "n_group": 1, "topk_group": 1}
STABLELM = {"model_type": "stablelm", "architectures": ["StableLmForCausalLM"], "hidden_size": 32, "head_dim": 8,
            "partial_rotary_factor": 0.5, "layer_norm_eps": 1e-5, "use_qkv_bias": True}
PHI = {"model_type": "phi", "architectures": ["PhiForCausalLM"], "hidden_size": 32, "head_dim": 8,
       "partial_rotary_factor": 0.5, "layer_norm_eps": 1e-5, "hidden_act": "gelu_new"}
SMOLLM3 = {"model_type": "smollm3", "architectures": ["SmolLM3ForCausalLM"], "pad_token_id": 0,
           "tie_word_embeddings": True, "no_rope_layer_interval": 2}
SEED_OSS = {"model_type": "seed_oss", "architectures": ["SeedOssForCausalLM"], "pad_token_id": 0}
ERNIE = {"model_type": "ernie4_5", "architectures": ["Ernie4_5ForCausalLM"], "pad_token_id": 0,
         "tie_word_embeddings": True}
GLM = {"model_type": "glm", "architectures": ["GlmForCausalLM"], "head_dim": 8, "hidden_size": 32, "pad_token_id": 0}
GLM4 = GLM | {"model_type": "glm4", "architectures": ["Glm4ForCausalLM"]}
GLM4_MOE = {"model_type": "glm4_moe", "architectures": ["Glm4MoeForCausalLM"], "head_dim": 8, "n_routed_experts": 6,
            "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 12, "first_k_dense_replace": 1,
            "routed_scaling_factor": 1.5, "use_qk_norm": True, "attention_bias": True, "num_nextn_predict_layers": 0,
            "n_group": 1, "topk_group": 1}
OLMO2 = {"model_type": "olmo2", "architectures": ["Olmo2ForCausalLM"], "pad_token_id": 0}
TWO_ROPES = {"full_attention": YARN | {"rope_theta": 100.0},
             "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}
OLMO3 = OLMO2 | {"model_type": "olmo3", "architectures": ["Olmo3ForCausalLM"], "sliding_window": 9,
                 "layer_types": ["sliding_attention", "full_attention"], "rope_parameters": TWO_ROPES}
OLMOE = {"model_type": "olmoe", "architectures": ["OlmoeForCausalLM"], "pad_token_id": 0, "num_experts": 4,
         "num_experts_per_tok": 2, "norm_topk_prob": False}
EXAONE4 = {"model_type": "exaone4", "architectures": ["Exaone4ForCausalLM"], "sliding_window": 9,
           "sliding_window_pattern": 2, "num_hidden_layers": 3, "rope_scaling": LLAMA3}
GRANITE = {"model_type": "granite", "architectures": ["GraniteForCausalLM"], "tie_word_embeddings": True,
           "embedding_multiplier": 3.0, "attention_multiplier": 0.3, "residual_multiplier": 0.6, "logits_scaling": 2.0}
CLOVA = GRANITE | {"model_type": "hyperclovax", "architectures": ["HyperCLOVAXForCausalLM"], "logits_scaling": 0.5,
                   "tie_word_embeddings": False}
GPT_OSS = {"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "num_local_experts": 4,
           "num_experts_per_tok": 2, "sliding_window": 9, "swiglu_limit": 1.0,
           "rope_scaling": YARN | {"truncate": False}}
COHERE = {"model_type": "cohere", "architectures": ["CohereForCausalLM"], "layer_norm_eps": 1e-5, "pad_token_id": 0,
          "tie_word_embeddings": True, "logit_scale": 0.5}
GRANITE_MOE = GRANITE | {"model_type": "granitemoe", "architectures": ["GraniteMoeForCausalLM"], "num_local_experts": 4,
                         "num_experts_per_tok": 2}
FALCON = {"model_type": "falcon", "architectures": ["FalconForCausalLM"], "vocab_size": 23, "hidden_size": 32,
          "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_hidden_size": 24, "max_position_embeddings": 64,
          "rope_theta": 100.0}
COHERE2 = COHERE | {"model_type": "cohere2", "architectures": ["Cohere2ForCausalLM"], "sliding_window": 9,
                    "sliding_window_pattern": 2}
NEMOTRON = {"model_type": "nemotron", "architectures": ["NemotronForCausalLM"], "hidden_size": 32, "head_dim": 8,
            "hidden_act": "relu2", "norm_eps": 1e-5, "partial_rotary_factor": 0.5}
ARCEE = {"model_type": "arcee", "architectures": ["ArceeForCausalLM"], "hidden_act": "relu2"}
JAIS2 = {"model_type": "jais2", "architectures": ["Jais2ForCausalLM"], "hidden_act": "relu2", "layer_norm_eps": 1e-5}
HUNYUAN = {"model_type": "hunyuan_v1_dense", "architectures": ["HunYuanDenseV1ForCausalLM"], "pad_token_id": 0}
HELIUM = {"model_type": "helium", "architectures": ["HeliumForCausalLM"], "pad_token_id": 0,
          "tie_word_embeddings": True}
CWM = {"model_type": "cwm", "architectures": ["CwmForCausalLM"], "sliding_window": 9, "rope_scaling": LLAMA3}
MINISTRAL = {"model_type": "ministral", "architectures": ["MinistralForCausalLM"], "sliding_window": 9,
             "layer_types": ["full_attention", "sliding_attention"]}
CASES = {
    "llama": BASE | LLAMA,
    "llama tied, attention biases": BASE | LLAMA | {"tie_word_embeddings": True, "attention_bias": True},
    "llama, linear rope": BASE | LLAMA | {"rope_scaling": {"rope_type": "linear", "factor": 2.5}},
    "llama, llama3 rope": BASE | LLAMA | {"rope_scaling": LLAMA3},
    "qwen2": BASE | QWEN2,
    "qwen2 tied": BASE | QWEN2 | {"tie_word_embeddings": True},
    "mistral": BASE | MISTRAL,
    "mistral, window": BASE | MISTRAL | {"sliding_window": 9},
    "qwen2, windows in later blocks": BASE | QWEN2 | {"use_sliding_window": True, "sliding_window": 5,
                                                      "max_window_layers": 1},
    "qwen2, windows by layer_types": BASE | QWEN2 | {"use_sliding_window": True, "sliding_window": 5,
                                                     "layer_types": ["sliding_attention", "full_attention"]},
    "qwen3": BASE | QWEN3,
    "qwen3 tied, attention biases": BASE | QWEN3 | {"tie_word_embeddings": True, "attention_bias": True},
    "llama, yarn rope": BASE | LLAMA | {"rope_scaling": YARN},
    "qwen2, yarn rope, magnitudes": BASE | QWEN2 | {"rope_scaling": YARN | {"mscale": 1.2, "mscale_all_dim": 0.7,
                                                                            "beta_fast": 4, "truncate": False}},
    "phi3, longrope, short": BASE | PHI3 | {"rope_scaling": LONGROPE, "original_max_position_embeddings": 40},
    "phi3, longrope, long": BASE | PHI3 | {"rope_scaling": LONGROPE, "original_max_position_embeddings": 16},
    "phi3, longrope of half a head": BASE | PHI3 | {
        "hidden_size": 32, "head_dim": 8, "partial_rotary_factor": 0.5, "rope_scaling": LONGROPE,
        "original_max_position_embeddings": 16},
    "phi3": BASE | PHI3,
    "phi3, window": BASE | PHI3 | {"sliding_window": 9},
    "gpt_neo": GPT_NEO,
    "bloom": BLOOM,
    "bloom, six heads": BLOOM | {"hidden_size": 24, "n_head": 6},
    "gemma": BASE | GEMMA,
    "gemma, untied, attention biases": BASE | GEMMA | {"tie_word_embeddings": False, "attention_bias": True},
    "gemma2": BASE | GEMMA2,
    "gemma3_text": BASE | GEMMA3,
    "gemma3_text, linear rope": BASE | GEMMA3 | {"rope_scaling": {"rope_type": "linear", "factor": 2.5}},
    "gemma3_text, bounds": BASE | GEMMA3 | {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0},
    "opt": OPT,
    "opt, norms behind, projected embeddings": OPT | {"do_layer_norm_before": False, "word_embed_proj_dim": 8},
    "qwen": QWEN,
    "mixtral": BASE | MIXTRAL,
    "mixtral, window": BASE | MIXTRAL | {"sliding_window": 9},
    "qwen2_moe": BASE | QWEN2_MOE,
    "qwen2_moe, a dense block, weights that sum to 1": BASE | QWEN2_MOE | {"mlp_only_layers": [0],
                                                                          "norm_topk_prob": True},
    "qwen2_moe, experts in each second block": BASE | QWEN2_MOE | {"decoder_sparse_step": 2},
    "qwen2_moe, windows in every second block": BASE | QWEN2_MOE_WINDOWS | {"max_window_layers": 3},
    "qwen2_moe, windows by layer_types": BASE | QWEN2_MOE_WINDOWS | {
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]},
    "qwen3_moe": BASE | QWEN3_MOE,
    "qwen3_moe, window": BASE | QWEN3_MOE | {"use_sliding_window": True, "sliding_window": 9},
    "qwen3_moe, weights as they are": BASE | QWEN3_MOE | {"norm_topk_prob": False},
    "dots1": BASE | DOTS1,
    "dots1, one group": BASE | DOTS1 | {"n_group": 1, "topk_group": 1, "first_k_dense_replace": 0},
    "deepseek_v2": BASE | DEEPSEEK_V2,
    "deepseek_v2, queries as they are, greedy, yarn rope": BASE | DEEPSEEK_V2 | DEEPSEEK_YARN | {
        "q_lora_rank": None, "topk_method": "greedy", "n_group": 1, "topk_group": 1, "v_head_dim": 16},
    "deepseek_v2, attention biases": BASE | DEEPSEEK_V2 | {"attention_bias": True, "first_k_dense_replace": 0},
    "deepseek_v3": BASE | DEEPSEEK_V3 | DEEPSEEK_YARN,
    "deepseek_v3, an epsilon of the outer norms": BASE | DEEPSEEK_V3 | {"rms_norm_eps": 0.1},
    "deepseek_v3, channels in halves": BASE | DEEPSEEK_V3 | {"rope_interleave": False, "attention_bias": True},
    "deepseek_v3, as Moonlight": BASE | MOONLIGHT,
    "gpt_neox": NEOX,
    "gptj": GPTJ,
    "gpt_neox, one half behind the other": NEOX | {"use_parallel_residual": False},
    "gpt_neox, linear rope": NEOX | {"rope_scaling": {"type": "linear", "factor": 4.0}},
    "gpt2": GPT2,
    "gpt2, exact gelu": GPT2 | {"activation_function": "gelu"},
    "starcoder2": BASE | STARCODER2,
    "starcoder2, window, untied, no biases": BASE | STARCODER2 | {"sliding_window": 9, "tie_word_embeddings": False,
                                                                  "use_bias": False},
    "stablelm": BASE | STABLELM,
    "stablelm, in parallel, no biases": BASE | STABLELM | {"use_parallel_residual": True, "use_qkv_bias": False},
    "phi": BASE | PHI,
    "smollm3": BASE | SMOLLM3,
    "smollm3, a window where nothing turns": BASE | SMOLLM3 | {
        "no_rope_layers": [0, 1], "use_sliding_window": True, "sliding_window": 9, "attention_bias": True},
    "seed_oss": BASE | SEED_OSS,
    "seed_oss, all biases": BASE | SEED_OSS | {"attention_out_bias": True, "mlp_bias": True},
    "ernie4_5": BASE | ERNIE,
    "ernie4_5, biases, untied": BASE | ERNIE | {"use_bias": True, "tie_word_embeddings": False},
    "glm": BASE | GLM,
    "glm4": BASE | GLM4,
    "glm4, no biases": BASE | GLM4 | {"attention_bias": False},
    "glm4_moe": BASE | GLM4_MOE,
    "glm4_moe, no norms of heads": BASE | GLM4_MOE | {"use_qk_norm": False, "attention_bias": False, "n_group": 3,
                                                      "topk_group": 2},
}
CASES |= {
    "llama, dynamic rope beyond its positions": BASE | LLAMA | {
        "max_position_embeddings": 16, "rope_scaling": {"rope_type": "dynamic", "factor": 4.0}},
    "llama, linear rope beyond its positions": BASE | LLAMA | {
        "max_position_embeddings": 16, "rope_scaling": {"rope_type": "linear", "factor": 4.0}},
    "olmo2": BASE | OLMO2,
    "olmo2, attention biases, tied": BASE | OLMO2 | {"attention_bias": True, "tie_word_embeddings": True},
    "olmo3": BASE | OLMO3,
    "olmoe": BASE | OLMOE,
    "olmoe, weights that sum to 1, biases": BASE | OLMOE | {"norm_topk_prob": True, "attention_bias": True},
    "exaone4": BASE | EXAONE4,
    "exaone4, no windows, tied": BASE | EXAONE4 | {"sliding_window": None, "sliding_window_pattern": None,
                                                   "tie_word_embeddings": True,
                                                   "layer_types": ["full_attention"] * 3},
    "granite": BASE | GRANITE,
    "granite, all biases, untied": BASE | GRANITE | {"attention_bias": True, "mlp_bias": True,
                                                     "tie_word_embeddings": False},
    "hyperclovax": BASE | CLOVA,
    "hyperclovax, no norms behind": BASE | CLOVA | {"use_post_norm": False},
    "cohere": BASE | COHERE,
    "cohere, biases, untied": BASE | COHERE | {"attention_bias": True, "tie_word_embeddings": False},
    "cohere2": BASE | COHERE2,
    "nemotron": BASE | NEMOTRON,
    "nemotron, all biases": BASE | NEMOTRON | {"attention_bias": True, "mlp_bias": True},
    "arcee": BASE | ARCEE | {"rope_scaling": YARN},
    "jais2": BASE | JAIS2,
    "hunyuan_v1_dense": BASE | HUNYUAN,
    "hunyuan_v1_dense, a stretched base": BASE | HUNYUAN | {
        "rope_scaling": {"type": "dynamic", "alpha": 20.0, "factor": 1.0}, "attention_bias": True},
    "helium": BASE | HELIUM,
    "cwm": BASE | CWM,
    "ministral": BASE | MINISTRAL,
    "gpt_oss": BASE | GPT_OSS,
    "gpt_oss, layer_types, an unscaled rope, another slope": BASE | GPT_OSS | {
        "layer_types": ["full_attention", "sliding_attention"], "rope_scaling": {"rope_type": "default"},
        "swiglu_alpha": 1.0, "attention_bias": False, "tie_word_embeddings": True},
    "granitemoe": BASE | GRANITE_MOE,
    "granitemoe, biases of attention": BASE | GRANITE_MOE | {"attention_bias": True, "residual_multiplier": 1.0},
    "granitemoeshared": BASE | GRANITE_MOE | {"model_type": "granitemoeshared", "shared_intermediate_size": 20,
                                              "architectures": ["GraniteMoeSharedForCausalLM"]},
    "cohere, norms of heads": BASE | COHERE | {"use_qk_norm": True},
    "falcon": FALCON,
    "falcon, groups of heads, two norms": FALCON | {"new_decoder_architecture": True, "num_kv_heads": 2, "bias": True},
    "falcon, groups of heads, one norm, untied": FALCON | {
        "new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1,
        "tie_word_embeddings": False},
    "falcon, all heads, one half behind the other": FALCON | {"multi_query": False, "parallel_attn": False,
                                                              "bias": True},
}
