"""Writes tests/golden/families.json: of tiny models of each family and kind of RoPE logits, log-probs, greedy tokens,
losses, gradients and the errors of bf16 by Hugging Face transformers, an implementation that is not ours. Weights
follow a formula that the test repeats, so that none are kept.

Made with Python 3.11, torch 2.11.0 (from StableLM on, and training in bf16, 2.15.0) and transformers 5.23.0:
python tests/golden/make_families.py

Cases that the file has with the same config stay as they are: another processor gives other last digits. What they lack
is added.
"""

import copy
import json
import pathlib
import types

import torch
import transformers

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
IDS = [(7 * i * i + 3 * i) % 23 for i in range(40)]
PROMPT, DRAWN = 20, 12  # tokens; LongRoPE of transformers has one kind of factors in all of these
BALANCE, Z = 0.05, 0.02  # weights of the routers' losses


def weights(name, tensor):
    """0.4·sin(0.7311·i + the sum of the name's bytes); norms' weights 1 + a quarter of it."""
    i = torch.arange(tensor.numel(), dtype=torch.float64)
    values = 0.4 * torch.sin(0.7311 * i + sum(name.encode()))
    if name.endswith("norm.weight"):
        values = 1 + values / 4
    return values.reshape(tensor.shape).float()


class Qwen(torch.nn.Module):
    """Qwen 1 by its published definition: transformers has no class for it."""

    def __init__(self, config):
        super().__init__()
        nn, hidden, inner = torch.nn, config["hidden_size"], config["intermediate_size"] // 2
        norm = lambda: nn.RMSNorm(hidden, config["layer_norm_epsilon"])
        linear = lambda width, out: nn.Linear(width, out, bias=False)
        block = lambda: nn.ModuleDict({
            "ln_1": norm(), "ln_2": norm(),
            "attn": nn.ModuleDict({"c_attn": nn.Linear(hidden, 3 * hidden), "c_proj": linear(hidden, hidden)}),
            "mlp": nn.ModuleDict({"w1": linear(hidden, inner), "w2": linear(hidden, inner),
                                  "c_proj": linear(inner, hidden)})})
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(config["vocab_size"], hidden), "ln_f": norm(),
            "h": nn.ModuleList(block() for _ in range(config["num_hidden_layers"]))})
        self.lm_head = linear(hidden, config["vocab_size"])
        self.heads, self.base, self.config = config["num_attention_heads"], config["rotary_emb_base"], None

    def turned(self, x):
        width = x.shape[-1]
        angles = torch.outer(torch.arange(x.shape[-2]), self.base ** (-torch.arange(0, width, 2) / width))
        cos, sin = (f(torch.cat([angles, angles], -1)).to(x.dtype) for f in (torch.cos, torch.sin))
        return x * cos + torch.cat([-x[..., width // 2 :], x[..., : width // 2]], -1) * sin

    def forward(self, ids, use_cache):
        x = self.transformer.wte(ids)
        for block in self.transformer.h:
            q, k, v = block.attn.c_attn(block.ln_1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            read = torch.nn.functional.scaled_dot_product_attention(self.turned(q), self.turned(k), v, is_causal=True)
            x = x + block.attn.c_proj(read.transpose(1, 2).flatten(-2))
            y = block.ln_2(x)
            x = x + block.mlp.c_proj(torch.nn.functional.silu(block.mlp.w2(y)) * block.mlp.w1(y))
        return types.SimpleNamespace(logits=self.lm_head(self.transformer.ln_f(x)))


def name_in_file(name, config):
    """Published files call some parameters otherwise; transformers renames them as it loads."""
    if config["model_type"] == "gpt_neox" and name == "lm_head.weight":
        return "embed_out.weight"
    return name.replace(".mlp.", ".block_sparse_moe.") if config["model_type"] == "mixtral" else name


def pieces_in_file(name, parameter, config):
    """The tensors of a file that make a parameter: (name, where they are in it). Experts have one each there."""
    at = name_in_file(name, config)
    if config["model_type"] == "gpt2" and ".h." in name and parameter.ndim == 2:
        return [(at, parameter.T)]  # the formula counts [out, in], the files have [in, out]
    if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
        return [(at, parameter)]
    at = at.rpartition(".")[0]
    gate, up, down = ("w1", "w3", "w2") if config["model_type"] == "mixtral" else ("gate_proj", "up_proj", "down_proj")
    if name.endswith("down_proj"):
        return [(f"{at}.{e}.{down}.weight", parameter[e]) for e in range(len(parameter))]
    half = parameter.shape[1] // 2
    return [(f"{at}.{e}.{which}.weight", parameter[e, first : first + half])
            for e in range(len(parameter)) for which, first in ((gate, 0), (up, half))]


def model_of(config):
    if config["model_type"] == "qwen":
        model = Qwen(config)
    else:
        kind = getattr(transformers, config["architectures"][0])
        model = kind(kind.config_class(**copy.deepcopy(config))).eval()  # which changes what it is given
        model.get_input_embeddings().padding_idx = None  # whose row would have no gradient
        model.set_experts_implementation("eager")  # the others do not compute in float64
    corrections = [(name, values) for name, values in model.named_buffers() if name.endswith("correction_bias")]
    with torch.no_grad():
        for name, parameter in list(model.named_parameters()) + corrections:
            for in_file, piece in pieces_in_file(name, parameter, config):
                piece.copy_(weights(in_file, piece))
    return model


def logits_of(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0]


def greedy(model):
    """At most DRAWN tokens: those ahead of one that is as likely as another but for rounding."""
    ids = IDS[:PROMPT]
    while len(ids) < PROMPT + DRAWN:
        (best, second), (token, _) = (of.tolist() for of in logits_of(model, ids)[-1].topk(2))
        if best - second < 3e-4:
            break
        ids = ids + [token]
    return ids[PROMPT:]


def gradients(model, config):
    """Gives of each tensor of the file (its name, its gradient)."""
    return [(in_file, piece) for name, parameter in model.named_parameters()
            for in_file, piece in pieces_in_file(name, parameter.grad, config)]


def probes(model, config):
    """Gives of each gradient its norm and its product with a wave of the same size."""
    return {name: [float(f"{x:.7g}") for x in (of.norm(), (of * weights("probe " + name, of)).sum())]
            for name, of in gradients(model, config)}


def losses(model):
    """Log-probs of the text, the loss that is their mean and that of routers, and leaves the gradients of its sum."""
    ids = torch.tensor([IDS])
    routed = hasattr(model.config, "router_aux_loss_coef")  # of others transformers gives no such loss
    out = model(ids, use_cache=False, **({"output_router_logits": True} if routed else {}))
    logits = out.logits[0, :-1] if out.logits.dtype == torch.float64 else out.logits[0, :-1].float()
    log_probs = logits.log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
    loss = -log_probs.mean()
    result = {"log_probs": log_probs.tolist(), "nll": loss.item()}
    if routed:
        # Zoph et al. 2022, equation 5; the mean over all routers as in transformers' other loss.
        z = torch.cat([logits.logsumexp(-1).square() for logits in out.router_logits]).mean()
        loss = loss + BALANCE * out.aux_loss + Z * z
        result["routers"] = {"balance": BALANCE, "z": Z, "aux_loss": out.aux_loss.item(), "z_loss": z.item()}
    loss.backward()
    return result


def training(model, config):
    """In float64: gradients of float32 are sums that lose a ten-thousandth where their terms cancel."""
    result = losses(model)
    result["log_probs"] = [round(x, 7) for x in result["log_probs"]]
    return result | {"gradients": probes(model, config)}


def rounded_models(config):
    """transformers in bf16, and float64 with weights that bf16 has: all, or those of linear layers and tables alone."""
    yield model_of(config).to(torch.bfloat16)
    for least in (1, 2):
        model = model_of(config).double()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim >= least:
                    parameter.copy_(parameter.to(torch.bfloat16))
        yield model


def training_in_bf16(config):
    """How far rounding to bf16 takes log-probs and gradients from those in float64: of log-probs the largest difference
    and the mean, of each gradient the norm of the difference. Of the models above the largest, as errors of one may
    cancel."""
    exact = model_of(config).double()
    wanted = torch.tensor(losses(exact)["log_probs"], dtype=torch.float64)
    log_probs, errors = [0.0, 0.0], dict.fromkeys(dict(gradients(exact, config)), 0.0)
    for model in rounded_models(config):
        difference = (torch.tensor(losses(model)["log_probs"], dtype=torch.float64) - wanted).abs()
        log_probs = [max(a, b.item()) for a, b in zip(log_probs, (difference.max(), difference.mean()))]
        for (name, a), (_, b) in zip(gradients(model, config), gradients(exact, config)):
            errors[name] = max(errors[name], (a.double() - b).norm().item())
    return {"log_probs": [float(f"{x:.4g}") for x in log_probs],
            "gradients": {name: float(f"{x:.4g}") for name, x in errors.items()}}


def rounding(config):
    """How far logits are from those in float64 by type: the largest difference, and the mean. Angles and norms of
    transformers are of fp32 in float64 too, which is nothing beside bf16."""
    exact = logits_of(model_of(config).double(), IDS)
    differences = lambda kind: (logits_of(model_of(config).to(kind), IDS).double() - exact).abs()
    return {str(kind).removeprefix("torch."): [float(f"{x:.4g}") for x in (of.max(), of.mean())]
            for kind in (torch.float32, torch.bfloat16) for of in (differences(kind),)}


def case(name, config):
    model = model_of(config)
    return {"name": name, "config": config, "ids": IDS,
            "logits": [round(x, 6) for x in logits_of(model, IDS).flatten().tolist()],
            "greedy": greedy(model), **training(model.double(), config), "rounding": rounding(config)}


if __name__ == "__main__":
    path = pathlib.Path(__file__).parent / "families.json"
    kept = {one["name"]: one for one in json.loads(path.read_text())}
    cases = [kept[name] if name in kept and kept[name]["config"] == config else case(name, config)
             for name, config in CASES.items()]
    for one in cases:
        if "training_in_bf16" not in one:
            one["training_in_bf16"] = training_in_bf16(one["config"])
    path.write_text(json.dumps(cases, separators=(",", ":")) + "\n")
    print(f"{path}: {len(cases)} cases, {path.stat().st_size} bytes")
