"""Writes tests/golden/families.json: logits of tiny models of each family and kind of RoPE by Hugging Face
transformers, an implementation that is not ours. Weights follow a formula that the test repeats, so that none are kept.

Made with Python 3.11, torch 2.11.0 and transformers 5.23.0: python tests/golden/make_families.py
"""

import json
import pathlib

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
CASES = {
    "llama": BASE | LLAMA,
    "llama tied, attention biases": BASE | LLAMA | {"tie_word_embeddings": True, "attention_bias": True},
    "llama, linear rope": BASE | LLAMA | {"rope_scaling": {"rope_type": "linear", "factor": 2.5}},
    "llama, llama3 rope": BASE | LLAMA | {"rope_scaling": LLAMA3},
    "qwen2": BASE | QWEN2,
    "qwen2 tied": BASE | QWEN2 | {"tie_word_embeddings": True},
    "mistral": BASE | MISTRAL,
}
IDS = [(7 * i * i + 3 * i) % 23 for i in range(40)]


def weights(name, tensor):
    """0.4·sin(0.7311·i + the sum of the name's bytes); norms' weights 1 + a quarter of it."""
    i = torch.arange(tensor.numel(), dtype=torch.float64)
    values = 0.4 * torch.sin(0.7311 * i + sum(name.encode()))
    if name.endswith("norm.weight"):
        values = 1 + values / 4
    return values.reshape(tensor.shape).float()


def logits(config):
    kind = getattr(transformers, config["architectures"][0])
    model = kind(kind.config_class(**config)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights(name, parameter))
        return model(torch.tensor([IDS])).logits[0]


if __name__ == "__main__":
    cases = [{"name": name, "config": config, "ids": IDS,
              "logits": [round(x, 6) for x in logits(config).flatten().tolist()]} for name, config in CASES.items()]
    path = pathlib.Path(__file__).parent / "families.json"
    path.write_text(json.dumps(cases, separators=(",", ":")) + "\n")
    print(f"{path}: {len(cases)} cases")
