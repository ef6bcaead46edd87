"""Writes tests/golden/defaults.json: of each family a config.json with little more than its sizes, and the same with
all that Hugging Face transformers makes of the keys that it leaves out.

Made with transformers 5.23.0: python tests/golden/make_defaults.py
"""

import json
import pathlib
import warnings

import transformers

SIZES = {"vocab_size": 64, "hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 32,
         "intermediate_size": 48}
MIXTURE = SIZES | {"num_experts_per_tok": 2}
GPT2 = {"vocab_size": 64, "n_embd": 256, "n_layer": 6, "n_head": 32}
LATENT = MIXTURE | {"num_key_value_heads": 32, "kv_lora_rank": 12, "q_lora_rank": None, "qk_nope_head_dim": 8,
                    "qk_rope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 6, "n_shared_experts": 2,
                    "moe_intermediate_size": 12, "first_k_dense_replace": 1}
THIRD = LATENT | {"n_group": 3, "topk_group": 2, "routed_scaling_factor": 1.5, "norm_topk_prob": True}
# Families whose sizes have other names, or that have to name more.
KEYS = {
    "bloom": {"vocab_size": 64, "hidden_size": 256, "n_layer": 6, "n_head": 32},
    "deepseek_v2": LATENT,
    "deepseek_v3": THIRD,
    "dots1": MIXTURE | {"n_routed_experts": 6, "n_shared_experts": 2, "moe_intermediate_size": 12,
                        "first_k_dense_replace": 1},
    "falcon": {"vocab_size": 64, "hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 32},
    "glm4_moe": MIXTURE | {"n_routed_experts": 6, "n_shared_experts": 2, "moe_intermediate_size": 12,
                           "first_k_dense_replace": 1},
    "gpt2": GPT2 | {"n_positions": 128},
    "gpt_neo": {"vocab_size": 64, "hidden_size": 256, "num_layers": 6, "num_heads": 32,
                "attention_types": [[["global", "local"], 3]]},
    "gpt_oss": MIXTURE | {"num_local_experts": 4},
    "gptj": GPT2 | {"rotary_dim": 4},
    "granitemoe": MIXTURE | {"num_local_experts": 4},
    "granitemoeshared": MIXTURE | {"num_local_experts": 4},
    "helium": SIZES | {"num_attention_heads": 20},
    "mixtral": MIXTURE | {"num_local_experts": 4},
    "olmoe": MIXTURE | {"num_experts": 4},
    "opt": {"vocab_size": 64, "hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 32, "ffn_dim": 48},
    "qwen2_moe": MIXTURE | {"num_experts": 4, "moe_intermediate_size": 12, "shared_expert_intermediate_size": 20},
    "qwen3_moe": MIXTURE | {"num_experts": 4, "moe_intermediate_size": 12},
}
OTHERS = ["arcee", "cohere", "cohere2", "cwm", "ernie4_5", "exaone4", "gemma", "gemma2", "gemma3_text", "glm", "glm4",
          "gpt_neox", "granite", "hunyuan_v1_dense", "hyperclovax", "jais2", "llama", "ministral", "mistral",
          "nemotron", "olmo2", "olmo3", "phi", "phi3", "qwen2", "qwen3", "seed_oss", "smollm3", "stablelm",
          "starcoder2"]


def case(family, keys):
    given = {"model_type": family} | keys
    config = transformers.AutoConfig.for_model(**given)
    return {"given": given, "whole": json.loads(config.to_json_string(use_diff=False))}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    cases = [case(family, KEYS.get(family, SIZES)) for family in sorted(set(KEYS) | set(OTHERS))]
    path = pathlib.Path(__file__).parent / "defaults.json"
    path.write_text(json.dumps(cases, separators=(",", ":")) + "\n")
    print(f"{path}: {len(cases)} families, {path.stat().st_size} bytes")
