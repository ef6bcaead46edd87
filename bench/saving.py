#!/usr/bin/env python3
"""How long training waits for a checkpoint: seconds of an iteration behind a save, less those of the others.

  bench/saving.py [--tokenizer DIRECTORY] [--rounds N] [PROGRAM]...

Trains random weights by SFT (15M and 110M parameters in fp32; a checkpoint has 12 bytes a parameter), saves after each
fifth iteration, and takes each PROGRAM in turn (build/release/bin/collimate). Prints medians over rounds with their
spread and, of the same rounds, the seconds that one writer takes to write and fsync as many bytes on the same disk.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

SIZES = {"15M": (288, 6, 6, 768), "110M": (768, 12, 12, 2048)}  # width, layers, heads, inner width
ITERATIONS, SAVE_EVERY = 14, 5


def write_task(root: pathlib.Path, tokenizer: pathlib.Path, size: str) -> pathlib.Path:
    width, layers, heads, inner = SIZES[size]
    shutil.copytree(tokenizer, root / "model", ignore=shutil.ignore_patterns("*.safetensors", "*.bin"))
    (root / "model/config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 32000, "hidden_size": width,
        "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": inner,
        "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "bos_token_id": 1,
        "eos_token_id": 2}))
    rows = [json.dumps({"prompt": f"Once {i}", "completion": f" upon a time there were {i * 7} of them"})
            for i in range(64)]
    (root / "rows.jsonl").write_text("\n".join(rows) + "\n")
    config = root / "run.yaml"
    config.write_text(f"recipe: sft\nmodels: {{policy: {{path: {root}/model, from_scratch: true}}}}\n"
                      f"data: {{train: {root}/rows.jsonl}}\ntrain: {{samples_per_update: 16}}\n"
                      f"run: {{iterations: {ITERATIONS}}}\n")
    return config


def intervals_of(program: str, config: pathlib.Path) -> tuple[list[float], list[float]]:
    """Seconds between lines of metrics.jsonl: behind a save, and all others but the first, which warms up."""
    output = config.parent / "run"
    shutil.rmtree(output, ignore_errors=True)
    subprocess.run([program, "train", str(config), "--output", str(output), "--set", f"run.save_every={SAVE_EVERY}"],
                   check=True, capture_output=True)
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    behind: dict[bool, list[float]] = {True: [], False: []}
    for before, after in zip(lines, lines[1:]):
        behind[before["step"] % SAVE_EVERY == 0].append(after["time_seconds"] - before["time_seconds"])
    return behind[True], behind[False][1:]


def bytes_of_checkpoint(config: pathlib.Path) -> int:
    return sum(file.stat().st_size for file in (config.parent / "run/checkpoints").rglob("*") if file.is_file())


def seconds_to_write(root: pathlib.Path, count: int) -> float:
    block, began = os.urandom(1 << 24), time.monotonic()
    with open(root / "plain", "wb") as file:
        for _ in range(count // len(block) + 1):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return time.monotonic() - began


def described(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.3f} ({min(seconds):.3f} to {max(seconds):.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", default=["build/release/bin/collimate"])
    parser.add_argument("--tokenizer", type=pathlib.Path,
                        default=pathlib.Path("../shared/data/models/stories260k-llama/hf-llama"))
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    pathlib.Path("runs").mkdir(exist_ok=True)
    for size in SIZES:
        with tempfile.TemporaryDirectory(dir="runs", prefix="saving-") as directory:
            root = pathlib.Path(directory).resolve()
            config = write_task(root, asked.tokenizer, size)
            seconds: dict[tuple[str, bool], list[float]] = {}
            written: list[float] = []
            for _ in range(asked.rounds):
                for program in asked.programs:
                    saving, others = intervals_of(program, config)
                    seconds.setdefault((program, True), []).extend(saving)
                    seconds.setdefault((program, False), []).extend(others)
                count = bytes_of_checkpoint(config) // 2  # two are kept
                written.append(seconds_to_write(root, count))
            print(f"{size}: checkpoints of {count / 1e6:.0f} MB; written and fsynced alone: {described(written)} s")
            for program in asked.programs:
                saving, others = seconds[program, True], seconds[program, False]
                wait = statistics.median(saving) - statistics.median(others)
                print(f"  {program}: {described(others)} s an iteration, {described(saving)} behind a save: waits "
                      f"{wait:.3f} s, {wait / statistics.median(written):.2f} of that", flush=True)


if __name__ == "__main__":
    main()
