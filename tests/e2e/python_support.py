"""The package `collimate` of the build for tests in Python, and a task for it: to sort three digits."""
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ["COLLIMATE_BIN_DIR"])
PROGRAM = BIN / "collimate"
PACKAGE = BIN.parent / "python"  # holds collimate/
PATIENCE = 300  # seconds; what takes longer hangs

sys.path.insert(0, str(PACKAGE))


def write_model(directory: pathlib.Path, **others) -> str:
    """Configuration and tokenizer of a Llama of two layers, or what `others` of its keys say; no weights."""
    directory.mkdir()
    (directory / "tokenizer_config.json").write_text(json.dumps({"char_ords": [ord(c) for c in "0123456789="]}))
    (directory / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 15, "hidden_size": 32,
        "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16,
        "intermediate_size": 64, "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "tie_word_embeddings": False, "bos_token_id": None, "eos_token_id": 1, "pad_token_id": 2,
        "hidden_act": "silu", **others}))
    return str(directory)


def problems(count: int, first: int = 0) -> list:
    rows = [f"{(i * 337 + 11) % 1000:03}" for i in range(first, first + count)]
    return [{"prompt": f"{row}=", "ground_truth": "".join(sorted(row))} for row in rows]


def demonstrations(count: int) -> list:
    return [{"prompt": row["prompt"], "completion": row["ground_truth"]} for row in problems(count)]


def config(model: str, recipe: str = "grpo", **sections) -> dict:
    """A run of three iterations from random weights."""
    values = {"recipe": recipe, "models": {"policy": {"path": model, "from_scratch": True, "initializer_std": 0.1}},
              "run": {"iterations": 3, "seed": 7, "threads": 1}, "train": {"learning_rate": 1e-3}}
    if recipe == "grpo":
        values["rollout"] = {"prompts_per_iteration": 4, "samples_per_prompt": 4, "prompt_tokens": 8,
                             "completion_tokens": 6}
    else:
        values["train"]["samples_per_update"] = 8
    for name, section in sections.items():
        values[name] = {**values.get(name, {}), **section}
    return values


def of_numbers(metrics: dict) -> dict:
    """Gives what two runs of the same numbers have in common."""
    measured = ("timing_s/", "memory/", "perf/")
    return {name: value for name, value in metrics.items() if name != "time_seconds" and not name.startswith(measured)}
