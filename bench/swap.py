#!/usr/bin/env python3
"""PPO of models that together take more than twice a device's budget, and what the process takes meanwhile.

  bench/swap.py [--tokenizer DIRECTORY] [--width N] [--layers N] [--budget MiB] [--iterations N] [PROGRAM]

Trains random weights by PPO in fp32 with policy, value model, reference and reward model of one shape, once with all of
them on the device and once in turns (residency: swap) within the budget. Another process than the program reads its
/proc/PID/smaps_rollup every 20 ms. Prints, of both runs, the planned bytes, the allocator's peak, the peak of anonymous
memory, seconds of an iteration and of these those of moves, and whether the models are equal.
"""
import argparse
import hashlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

MODELS = ("policy", "policy_trainer", "value", "reference", "reward")
MEBI = 1 << 20


def write_task(root: pathlib.Path, arguments: argparse.Namespace) -> pathlib.Path:
    width = arguments.width
    shutil.copytree(arguments.tokenizer, root / "model", ignore=shutil.ignore_patterns("*.safetensors", "*.bin"))
    tokens = json.loads((root / "model/config.json").read_text())["vocab_size"]
    (root / "model/config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": tokens, "hidden_size": width,
        "num_hidden_layers": arguments.layers, "num_attention_heads": width // 64, "intermediate_size": 3 * width,
        "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "bos_token_id": 1,
        "eos_token_id": 2}))
    rows = [json.dumps({"prompt": f"Once upon a time there were {i * 7}"}) for i in range(64)]
    (root / "rows.jsonl").write_text("\n".join(rows) + "\n")
    pairs = [json.dumps({"prompt": f"Once {i}", "chosen": " upon a time", "rejected": " there"}) for i in range(8)]
    (root / "pairs.jsonl").write_text("\n".join(pairs) + "\n")
    of_random = f"{{path: {root}/model, from_scratch: true}}"
    reward = root / "reward.yaml"
    reward.write_text(f"recipe: reward\nmodels: {{policy: {of_random}}}\ndata: {{train: {root}/pairs.jsonl}}\n"
                      "run: {iterations: 1}\ntrain: {samples_per_update: 8, learning_rate: 1e-3}\n")
    subprocess.run([arguments.program, "train", str(reward), "--output", str(root / "judge")], check=True,
                   capture_output=True)
    config = root / "run.yaml"
    config.write_text(
        f"recipe: ppo\nmodels: {{policy: {of_random}, reward: {{path: {root}/judge/model}}}}\n"
        f"data: {{train: {root}/rows.jsonl}}\nrun: {{iterations: {arguments.iterations}, seed: 1}}\n"
        "train: {learning_rate: 1e-5, micro_batch_tokens: 256}\n"
        "rollout: {prompts_per_iteration: 2, samples_per_prompt: 2, prompt_tokens: 32, completion_tokens: 16}\n")
    return config


def anonymous_bytes(pid: int) -> int:
    try:
        lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Anonymous:"))


def run(program: str, config: pathlib.Path, name: str, sets: list[str]) -> dict:
    output = config.parent / name
    words = [program, "train", str(config), "--output", str(output)]
    for value in sets:
        words += ["--set", value]
    with open(config.parent / f"{name}.log", "w") as log:
        child = subprocess.Popen(words, stdout=log, stderr=log)
        peak = 0
        while child.poll() is None:
            peak = max(peak, anonymous_bytes(child.pid))
            time.sleep(0.02)
    if child.returncode != 0:
        raise SystemExit((config.parent / f"{name}.log").read_text())
    worker = json.loads((output / "summary.json").read_text())["memory"]["workers"][0]
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    weights = hashlib.sha256()
    for file in sorted((output / "model").glob("*.safetensors")):
        weights.update(file.read_bytes())
    return {"planned": worker["planned_bytes"], "peak": worker["peak_bytes"], "anonymous": peak,
            "step": statistics.median(line["timing_s/step"] for line in lines[1:]),
            "swap": statistics.median(line.get("timing_s/swap", 0) for line in lines[1:]),
            "weights": weights.hexdigest()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=pathlib.Path,
                        default=pathlib.Path("../shared/data/models/stories260k-llama/hf-llama"))
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--budget", type=int, default=1024)
    parser.add_argument("--iterations", type=int, default=4)
    parser.add_argument("program", nargs="?", default="build/release/bin/collimate")
    arguments = parser.parse_args()
    placement = ("version: 1, devices: {count: 1, kind: cpu}, groups: {all: {devices: [0], models: ["
                 + ", ".join(MODELS) + "]}}")
    turns = ", ".join(f"{model}: swap" for model in MODELS)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as scratch:
        config = write_task(pathlib.Path(scratch), arguments)
        whole = run(arguments.program, config, "whole", [f"placement={{{placement}}}"])
        swapped = run(arguments.program, config, "swapped",
                      [f"placement={{{placement}, residency: {{{turns}}}}}", f"run.memory_budget={arguments.budget}"])
    for name, found in (("whole", whole), ("swapped", swapped)):
        print(f"{name}: planned {found['planned'] / MEBI:.0f} MiB, tensors {found['peak'] / MEBI:.0f} MiB, anonymous "
              f"{found['anonymous'] / MEBI:.0f} MiB; {found['step']:.2f} s an iteration, moves {found['swap']:.2f} s")
    print(f"planned together: {whole['planned'] / (arguments.budget * MEBI):.2f} x the budget; anonymous in turns: "
          f"{swapped['anonymous'] / swapped['planned']:.2f} x the plan; equal models: "
          f"{whole['weights'] == swapped['weights']}")


if __name__ == "__main__":
    main()
