"""Inputs of our side of the comparison: Llamas of 260K, 15M and 110M parameters over one-character tokens (one
character of text is one token), prompts of 64 tokens, SFT rows of 512 tokens, pairs of 128 + 384 tokens, and the
configs."""

import json
import pathlib
import random

CHARACTERS = [chr(0x4E00 + i) for i in range(20992)] + [chr(0xAC00 + i) for i in range(11004)]  # 31,996 and 4 specials
SPECIALS = 4  # ids 0 to 3: S, E (ends a sequence), P (padding), U (unknown)


def shape(hidden, intermediate, layers, heads, kv_heads, vocabulary, positions, epsilon):
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden,
        "intermediate_size": intermediate, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "vocab_size": vocabulary, "max_position_embeddings": positions,
        "rms_norm_eps": epsilon, "rope_theta": 10000.0, "tie_word_embeddings": True, "hidden_act": "silu",
        "eos_token_id": 1, "pad_token_id": 2,
    }


SHAPES = {
    "260k": shape(64, 172, 5, 8, 4, 512, 512, 1e-5),
    "15m": shape(288, 768, 6, 6, 6, 32000, 2048, 1e-6),
    "110m": shape(768, 2048, 12, 12, 12, 32000, 2048, 1e-6),
}
MODEL = """models:
  policy: {{path: {model}, from_scratch: {scratch}}}
"""
# Every completion has 128 tokens, as TRL's min_new_tokens makes of it.
GRPO = """recipe: grpo
data: {{train: {directory}/prompts-{size}.jsonl}}
reward: [{{python: "bench/peers/reward.py:score", on_error: stop, deterministic: true}}]
algorithm: {{beta: 0.04}}
rollout:
  {{prompts_per_iteration: 8, samples_per_prompt: 8, prompt_tokens: 64, completion_tokens: 128, ignore_eos: true}}
train: {{learning_rate: 1e-6}}
run: {{iterations: 3, seed: 1, samples_every: 0}}
"""
SFT = """recipe: sft
data: {{train: {directory}/rows.jsonl, max_tokens: 512}}
train: {{learning_rate: 1e-5, samples_per_update: 8}}
run: {{iterations: 4, seed: 1, samples_every: 0}}
"""
DPO = """recipe: dpo
data: {{train: {directory}/pairs.jsonl, max_tokens: 512}}
algorithm: {{beta: 0.1}}
train: {{learning_rate: 1e-5, samples_per_update: 8}}
run: {{iterations: 4, seed: 1, samples_every: 0}}
"""
CONFIGS = {"grpo": ("15m", GRPO), "grpo-260k": ("260k", GRPO), "grpo-110m": ("110m", GRPO), "sft": ("15m", SFT),
           "dpo": ("15m", DPO)}  # by part: size of the model, config


def model_directory(directory, size):
    return pathlib.Path(directory) / ("model" if size == "15m" else f"model-{size}")


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def write_model(directory, size, peer_model):
    """The model's directory. `peer_model`: one with the peers' weights of the same shape, or None for no weights."""
    model = model_directory(directory, size)
    model.mkdir(parents=True, exist_ok=True)
    characters = CHARACTERS[:SHAPES[size]["vocab_size"] - SPECIALS]
    (model / "config.json").write_text(json.dumps(SHAPES[size]))
    (model / "tokenizer_config.json").write_text(
        json.dumps({"char_ords": [ord(c) for c in characters], "model_max_length": 2048}))
    weights = model / "model.safetensors"
    weights.unlink(missing_ok=True)
    if peer_model:
        weights.symlink_to((pathlib.Path(peer_model) / "model.safetensors").resolve())


def write_data(directory):
    draw = random.Random(0)
    text = lambda n, characters=CHARACTERS: "".join(draw.choices(characters, k=n))
    for size, model in SHAPES.items():
        characters = CHARACTERS[:model["vocab_size"] - SPECIALS]
        write_lines(directory / f"prompts-{size}.jsonl", [{"prompt": text(64, characters)} for _ in range(64)])
    # A prompt of one character, then 510 characters and the end of sequence: 511 trained tokens.
    write_lines(directory / "rows.jsonl", [{"prompt": text(1), "completion": text(510)} for _ in range(64)])
    # 128 characters, then 383 and the end of sequence, twice.
    write_lines(directory / "pairs.jsonl",
                [{"prompt": text(128), "chosen": text(383), "rejected": text(383)} for _ in range(32)])


def write(directory, parts, peer_model):
    """Makes what the parts read. `peer_model(size)`: a directory with the peers' weights; None: our own random ones."""
    directory = pathlib.Path(directory)
    write_data(directory)
    for part in parts:
        size, config = CONFIGS[part]
        write_model(directory, size, peer_model(size))
        config = MODEL + config
        (directory / f"{part}.yaml").write_text(
            config.format(directory=directory, size=size, model=model_directory(directory, size),
                          scratch="false" if peer_model(size) else "true"))
