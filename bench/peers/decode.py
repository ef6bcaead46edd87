"""Tokens per second of generation beside what a user would pick instead, one after another, interleaved:

    python3 bench/peers/decode.py [--all] [260k] [15m] [110m] [0.5b]         260k and 15m when none is named

Greedy, prompts of 64 tokens, 128 new ones, 1, 8, 32 and 64 at once, both dtypes of each side. Environment and raw
numbers as in compare.py (its part "decode MODEL"); a peer that setup.sh has not installed is named and left out.
A sample is the best of three generations in one process.
"""

import json
import pathlib
import statistics
import sys

import compare

BENCH = pathlib.Path(compare.PROGRAM).with_name("bench_decode")
STORIES = compare.SCRIPTS.parents[1] / "data/models/stories260k-llama/hf-llama"
BATCHES = ("1", "8", "32", "64")


def model_directory(model):
    return STORIES if model == "260k" else compare.PEERS / "models" / model


def ours(model, dtype):
    command = [BENCH, model_directory(model), compare.COMPUTE[dtype], "3", *BATCHES]
    log = compare.OUT / "decode.log"
    compare.run(list(map(str, command)), log)
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]


def theirs(command, environment=None):
    raw = compare.OUT / "peer.jsonl"
    raw.unlink(missing_ok=True)
    command = list(map(str, [*command, "--batches", ",".join(BATCHES), "--reps", "3", "--budget", "10", "--out", raw]))
    compare.run(command, compare.OUT / "decode-peer.log", environment)
    return [json.loads(line) for line in raw.read_text().splitlines()]


def python(peer):
    return compare.PEERS / peer / "bin/python"


def sides(model):
    """By name: how one sample of each batch is taken."""
    found = {f"ours {d}": lambda d=d: ours(model, d) for d in compare.DTYPES}
    scripts = compare.SCRIPTS
    if python("trl").exists():
        for d in compare.DTYPES:
            command = [python("trl"), scripts / "decode_hf.py", "--models", model, "--dtypes", d]
            found[f"HF {d}"] = lambda c=command: theirs(c, compare.best_allocator())
    if model != "260k" and python("llamacpp").exists():
        for d in compare.DTYPES:
            command = [python("llamacpp"), scripts / "decode_llamacpp.py", "--model", model,
                       "--type", {"fp32": "f32", "bf16": "bf16"}[d]]
            found[f"llama.cpp {d}"] = lambda c=command: theirs(c)
    if model != "260k" and python("vllm").exists():
        command = [python("vllm"), scripts / "decode_vllm.py", "--model", model, "--dtype", "bf16"]
        found["vLLM bf16"] = lambda c=command: theirs(c)
    missing = {"trl", "llamacpp", "vllm"} - {p for p in ("trl", "llamacpp", "vllm") if python(p).exists()}
    if missing:
        print(f"not installed: {', '.join(sorted(missing))}; try bash {scripts}/setup.sh {' '.join(sorted(missing))}")
    return found


def table(model, every):
    print(f"\ndecode {model}: tokens per second, median over processes (least .. largest)")
    print("| side | " + " | ".join(f"{b} at once" for b in BATCHES) + " | peak MB |")
    by_side = compare.samples_of(f"decode {model}", every)
    for side, samples in by_side.items():
        cells = []
        for batch in BATCHES:
            speeds = sorted(s["tok_s"] for s in samples if s["batch"] == int(batch))
            cells.append(f"{statistics.median(speeds):.0f} ({speeds[0]:.0f} .. {speeds[-1]:.0f})" if speeds else "")
        memory = max((s["memory"] for s in samples if s.get("memory")), default=0)
        print(f"| {side} | " + " | ".join(cells) + f" | {memory:.0f} |")
    print("| best of ours / best of theirs | " + " | ".join(ratio(by_side, int(batch)) for batch in BATCHES) + " | |")


def ratio(by_side, batch):
    def best(mine):
        speeds = [statistics.median(s["tok_s"] for s in samples if s["batch"] == batch)
                  for side, samples in by_side.items()
                  if side.startswith("ours") == mine and any(s["batch"] == batch for s in samples)]
        return max(speeds, default=None)

    return f"{best(True) / best(False):.2f}" if best(True) and best(False) else ""


def main(models, every):
    compare.OUT.mkdir(parents=True, exist_ok=True)
    for model in models:
        if not (model_directory(model) / "config.json").exists():
            print(f"{model}: no model in {model_directory(model)}; try bash {compare.SCRIPTS}/setup.sh trl")
            continue
        takers = sides(model)
        for repeat in range(compare.REPEATS):
            print(f"{model}: round {repeat + 1} of {compare.REPEATS}", flush=True)
            for side, take in takers.items():
                for line in take():
                    sample = {"batch": line["batch"], "tok_s": line["tok_s"], "memory": line.get("peak_rss_mb")}
                    compare.record(f"decode {model}", side, sample)
        table(model, every)


if __name__ == "__main__":
    wanted = [word for word in sys.argv[1:] if word != "--all"]
    unknown = set(wanted) - {"260k", "15m", "110m", "0.5b"}
    if unknown:
        sys.exit(f"[bench/peers] expected 260k, 15m, 110m or 0.5b, got {', '.join(sorted(unknown))}")
    main(wanted or ["260k", "15m"], "--all" in sys.argv[1:])
