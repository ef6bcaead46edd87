"""Whether other programs read what a run saves, and continue as we do: a small model of each family is trained for some
steps from random weights and saved, then adapters beside it; Hugging Face transformers and PEFT, and vLLM with --vllm,
read both directories and continue the same prompts greedily:

    python3 bench/peers/export.py [--vllm] [FAMILY ...]

The models are the first of each family in tests/golden/families.json, with the words of the 260K model's tokenizer, and
the peers' "llama 260k" and "llama 15m". With --vllm, whose kernels want larger heads, those of the families have heads
of 64 (and "llama 260k", whose heads have 8, is left out). A cell says how many of the tokens are the same, and of the
first that is not how far apart the logits of both tokens are in fp64, beside how far the peer's own logits are from
fp64 there: a difference that is no larger than that is one of rounding. Or it says why the peer does not read it.
Environment as in compare.py; directories stay in BENCH_OUT/export.
"""

import json
import shutil
import sys

import compare

GOLDEN = compare.ROOT / "tests/golden"
OUT = compare.OUT / "export"
PARTS = {"transformers": "trl", "vllm": "vllm"}  # of setup.sh
TOKENS = 48
HEAD = 64  # of vLLM's kernels
WIDTHS = ("hidden_size", "n_embd", "head_dim", "kv_channels", "word_embed_proj_dim", "rotary_dim", "intermediate_size",
          "n_inner", "ffn_dim", "moe_intermediate_size", "shared_expert_intermediate_size", "kv_lora_rank",
          "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
PROMPTS = ["Once upon a time", "The dog ran to", "Lily was sad because", "One day, a bird", "Tom and Sam like",
           "In the park there"]
TEXTS = ["Once upon a time there was a little dog. The dog ran to the park and saw a big red ball.",
         "Lily was sad because she lost her doll. One day, a bird came and gave it back. She was happy.",
         "Tom and Sam like to play in the park. In the park there is a tree with many birds."]
CONFIG = """recipe: sft
models: {{policy: {{path: {path}, from_scratch: {scratch}, initializer_std: 0.2{lora}}}}}
data: {{train: {rows}, max_tokens: 64}}
train: {{samples_per_update: 6, learning_rate: {rate}}}
run: {{iterations: 60, seed: 1, samples_every: 0}}
"""


def widened(config):
    """The config with heads of 64: what is as wide as heads are grows with them."""
    named = lambda *names: next(config[name] for name in names if name in config)  # noqa: E731
    times = HEAD * named("num_attention_heads", "num_heads", "n_head") // named("hidden_size", "n_embd")
    wide = config | {name: config[name] * times for name in WIDTHS if isinstance(config.get(name), int)}
    for key, factors in (config.get("rope_scaling") or {}).items():
        if isinstance(factors, list):
            wide["rope_scaling"] = wide["rope_scaling"] | {key: [factor for factor in factors for _ in range(times)]}
    return wide


def shapes():
    """A config of each family, of which transformers has a class: Qwen 1 has none there."""
    found = {}
    for case in json.loads((GOLDEN / "families.json").read_text()):
        found.setdefault(case["config"]["model_type"], case["config"])
    found["gpt2"] = json.loads((GOLDEN / "small/models/tiny-gpt2/config.json").read_text()) | {"n_positions": 64}
    del found["qwen"]
    return found


def begin(family, config):
    """The directory that the family's run begins from; of a model of the peers, its own."""
    if isinstance(config, str):
        return compare.peer_model(config)
    directory = OUT / family / "config"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    words = {"vocab_size": 512, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    (directory / "config.json").write_text(json.dumps(config | words))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(compare.STORIES / name, directory)
    return directory


def train(name, path, scratch, lora=""):
    """The model directory of a run that begins at `path`."""
    run = OUT / name
    shutil.rmtree(run, ignore_errors=True)
    rate = "3e-3" if scratch or lora else "1e-4"
    text = CONFIG.format(path=path, scratch=str(scratch).lower(), lora=lora, rows=OUT / "rows.jsonl", rate=rate)
    file = OUT / f"{name.replace('/', '-')}.yaml"
    file.write_text(text)
    compare.run([compare.PROGRAM, "train", file, "--output", run, "--resume", "never"], file.with_suffix(".log"))
    return run / "model"


def ours(directory, dtype):
    """Token ids of the prompts and of what follows."""
    file = OUT / "ours.jsonl"
    file.unlink(missing_ok=True)
    compare.run([compare.PROGRAM, "generate", directory, "--data", OUT / "prompts.jsonl", "--output", file,
                 "--logprobs", "--temperature", "0", "--max-tokens", TOKENS, "--ignore-eos", "true", "--compute",
                 compare.COMPUTE[dtype]], OUT / "ours.log")
    return [line["token_ids"] for line in compare.json_lines(file)]


def peer(name, jobs):
    """By job: of each prompt in how many tokens the peer agrees and, where they part, its logits there."""
    asked, answer = OUT / "asked.json", OUT / "answer.jsonl"
    asked.write_text(json.dumps({"prompts": PROMPTS, "count": TOKENS, "jobs": jobs}))
    script = compare.ROOT / "bench/peers/export_peer.py"
    compare.run([compare.python(PARTS[name]), script, name, asked, answer], OUT / f"{name}.log")
    return [line["rows"] for line in compare.json_lines(answer)]


def cell(rows):
    if isinstance(rows, str):
        return f"not read: {rows}"
    same, all_tokens = sum(row["same"] for row in rows), TOKENS * len(rows)
    parted = [row for row in rows if "gap" in row]
    if not parted:
        return f"{same} of {all_tokens}"
    worst = max(parted, key=lambda row: row["gap"] - row["rounding"])
    verdict = "rounding" if all(row["gap"] <= 2 * row["rounding"] for row in parted) else "DIFFERENT"
    return f"{same} of {all_tokens}: {verdict} ({worst['gap']:.1e} apart, rounding {worst['rounding']:.1e})"


def families(names, wide):
    sizes = [size for size in ("260k", "15m") if compare.peer_model(size) and not (wide and size == "260k")]
    every = {name: widened(config) if wide else config for name, config in shapes().items()}
    every |= {f"llama {size}": size for size in sizes}
    unknown = [name for name in names if name not in every]
    if unknown:
        sys.exit(f"[bench/peers/export.py] expected {', '.join(every)}, got {', '.join(unknown)}")
    return {name: every[name] for name in names or every}


def jobs_of(family, config):
    """Trains and saves, and tells what others read: (directory, base of adapters or "", dtype, our tokens)."""
    place = family.replace(" ", "-")
    model = train(f"{place}/full", begin(place, config), not isinstance(config, str))
    adapters = train(f"{place}/lora", model, False, ", lora: {rank: 4, alpha: 16}") / "adapter"
    return [{"directory": str(directory), "base": base, "dtype": dtype, "tokens": ours(directory, dtype)}
            for directory, base in ((model, ""), (adapters, str(model))) for dtype in compare.DTYPES]


def table(name, jobs):
    """Prints the table of one peer; vLLM reads whole models."""
    asked = {family: [job for job in mine if name != "vllm" or not job["base"]] for family, mine in jobs.items()}
    answers = iter(peer(name, [job for mine in asked.values() for job in mine]))
    columns = [f"{'adapters' if job['base'] else 'model'}, {job['dtype']}" for job in next(iter(asked.values()))]
    print(f"\n{name}\n| family | " + " | ".join(columns) + " |\n" + "|---" * (1 + len(columns)) + "|")
    for family, mine in asked.items():
        print(f"| {family} | " + " | ".join(cell(next(answers)) for _ in mine) + " |")


def main(arguments):
    peers = ["transformers", *(["vllm"] if "--vllm" in arguments else [])]
    for name in peers:
        if not compare.python(PARTS[name]).exists():
            return print(f"{name} is not installed; try bash {compare.SCRIPTS}/setup.sh {PARTS[name]}")
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "rows.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS * 2))
    (OUT / "prompts.jsonl").write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in PROMPTS))
    named = families([word for word in arguments if not word.startswith("--")], "vllm" in peers)
    jobs = {family: jobs_of(family, config) for family, config in named.items()}
    for name in peers:
        table(name, jobs)


if __name__ == "__main__":
    main(sys.argv[1:])
