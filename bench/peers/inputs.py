"""Inputs of our side of the comparison: a Llama of 15M parameters over 32,000 one-character tokens (one character of
text is one token), prompts of 64 tokens, SFT rows of 512 tokens, and the two configs."""

import json
import pathlib
import random
import shutil

CHARACTERS = [chr(0x4E00 + i) for i in range(20992)] + [chr(0xAC00 + i) for i in range(11004)]  # 31,996 and 4 specials
SHAPE = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 288, "intermediate_size": 768,
    "num_hidden_layers": 6, "num_attention_heads": 6, "num_key_value_heads": 6, "vocab_size": 32000,
    "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": True,
    "hidden_act": "silu", "eos_token_id": 1, "pad_token_id": 2,
}
GRPO = """recipe: grpo
models:
  policy: {{path: {directory}/model, from_scratch: {scratch}}}
data: {{train: {directory}/prompts.jsonl}}
reward: [{{python: "bench/peers/reward.py:score", on_error: stop, deterministic: true}}]
algorithm: {{beta: 0.04}}
rollout: {{prompts_per_iteration: 8, samples_per_prompt: 8, prompt_tokens: 64, completion_tokens: 128}}
train: {{learning_rate: 1e-6}}
run: {{iterations: 3, seed: 1, samples_every: 0}}
"""
SFT = """recipe: sft
models:
  policy: {{path: {directory}/model, from_scratch: {scratch}}}
data: {{train: {directory}/rows.jsonl, max_tokens: 512}}
train: {{learning_rate: 1e-5, samples_per_update: 8}}
run: {{iterations: 4, seed: 1, samples_every: 0}}
"""


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def write(directory, peer_model):
    """`peer_model`: a directory with the peers' weights of the same shape, or None for random ones of our own."""
    directory = pathlib.Path(directory)
    model = directory / "model"
    model.mkdir(parents=True, exist_ok=True)
    (model / "config.json").write_text(json.dumps(SHAPE))
    (model / "tokenizer_config.json").write_text(
        json.dumps({"char_ords": [ord(c) for c in CHARACTERS], "model_max_length": 2048}))
    if peer_model:
        shutil.copy(pathlib.Path(peer_model) / "model.safetensors", model)
    draw = random.Random(0)
    text = lambda n: "".join(draw.choices(CHARACTERS, k=n))
    write_lines(directory / "prompts.jsonl", [{"prompt": text(64)} for _ in range(64)])
    # A prompt of one character, then 510 characters and the end of sequence: 511 trained tokens.
    write_lines(directory / "rows.jsonl", [{"prompt": text(1), "completion": text(510)} for _ in range(64)])
    for name, config in (("grpo", GRPO), ("sft", SFT)):
        (directory / f"{name}.yaml").write_text(
            config.format(directory=directory, scratch="false" if peer_model else "true"))
