"""Tokens per second of generation beside what a user would pick instead, one after another, interleaved:

    python3 bench/peers/decode.py [--all] [--int8] [260k] [15m] [110m] [0.5b]         260k and 15m when none is named

Greedy, prompts of 64 tokens, 128 new ones, 1, 8, 32 and 64 at once (0.5b: 1, 8 and 32), both dtypes of each side.
--int8: ours with int8 weights too, which the ratio to the best peer leaves out. Environment and raw numbers as in
compare.py (its part "decode MODEL"); a peer that setup.sh has not installed is named and left out. A sample is the best
of three generations in one process.
"""

import json
import pathlib
import statistics
import sys

import compare
import targets

BENCH = pathlib.Path(compare.PROGRAM).with_name("bench_decode")
COMPUTE = {**compare.COMPUTE, "int8": "int8"}
KINDS = {"fp32": "f32", "bf16": "bf16"}  # llama.cpp's names


def batches(model):
    return ("1", "8", "32") if model == "0.5b" else ("1", "8", "32", "64")


def ours(model, dtype):
    command = [BENCH, compare.peer_model(model), COMPUTE[dtype], "3", *batches(model)]
    log = compare.OUT / "decode.log"
    compare.run(list(map(str, command)), log)
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]


def theirs(model, command, environment=None):
    raw = compare.OUT / "peer.jsonl"
    raw.unlink(missing_ok=True)
    command = [*command, "--batches", ",".join(batches(model)), "--reps", "3", "--budget", "10", "--out", raw]
    compare.run(list(map(str, command)), compare.OUT / "decode-peer.log", environment)
    return [json.loads(line) for line in raw.read_text().splitlines()]


def python(peer):
    return compare.PEERS / peer / "bin/python"


def gguf(model, kind):
    """The model as llama.cpp reads it: from setup.sh, else made here once. None for fp32 of a model kept in bf16."""
    name = f"{model}-{kind}.gguf"
    if (compare.PEERS / "models/gguf" / name).exists():
        return compare.PEERS / "models/gguf" / name
    if model == "0.5b" and kind == "f32":
        return None
    made = compare.OUT / "gguf" / name
    if not made.exists():
        made.parent.mkdir(exist_ok=True)
        part = made.with_suffix(".part")
        command = [python("llamacpp"), compare.SCRIPTS / "hf2gguf.py", model, kind, part]
        compare.run(list(map(str, command)), compare.OUT / "hf2gguf.log")
        part.rename(made)
    return made


def sides(model, dtypes):
    """By name: how one sample of each batch is taken."""
    found = {f"ours {d}": lambda d=d: ours(model, d) for d in dtypes}
    scripts = compare.SCRIPTS
    take = lambda command, environment=None: lambda: theirs(model, command, environment)
    missing = [peer for peer in ("trl", "llamacpp", "vllm") if not python(peer).exists()]
    for d in compare.DTYPES:
        if "trl" not in missing:
            command = [python("trl"), scripts / "decode_hf.py", "--models", model, "--dtypes", d]
            found[f"HF {d}"] = take(command, compare.best_allocator())
        kind = KINDS[d]
        if "llamacpp" not in missing and gguf(model, kind):
            found[f"llama.cpp {d}"] = take([python("llamacpp"), scripts / "decode_llamacpp.py", "--model", model,
                                            "--type", kind, "--gguf", gguf(model, kind).parent])
        if "vllm" not in missing and model != "260k":  # heads of 8: their own run.sh leaves it out too
            found[f"vLLM {d}"] = take([python("vllm"), scripts / "decode_vllm.py", "--model", model, "--dtype", d])
    if missing:
        print(f"not installed: {', '.join(missing)}; try bash {scripts}/setup.sh {' '.join(missing)}")
    return found


def table(model, every):
    print(f"\ndecode {model}: tokens per second, median over processes (least .. largest)")
    print("| side | " + " | ".join(f"{b} at once" for b in batches(model)) + " | loading s | peak MB |")
    by_side = compare.samples_of(f"decode {model}", every)
    for side, samples in by_side.items():
        cells = []
        for batch in batches(model):
            speeds = sorted(s["tok_s"] for s in samples if s["batch"] == int(batch))
            cells.append(f"{statistics.median(speeds):.0f} ({speeds[0]:.0f} .. {speeds[-1]:.0f})" if speeds else "")
        memory = max((s["memory"] for s in samples if s.get("memory")), default=0)
        loads = [s["load_s"] for s in samples if s.get("load_s") is not None]
        cells.append(f"{statistics.median(loads):.2f}" if loads else "")
        print(f"| {side} | " + " | ".join(cells) + f" | {memory:.0f} |")
    aims = [targets.shown(targets.DECODE[model].get(int(batch))) for batch in batches(model)]
    ratios = [ratio(by_side, int(batch)) for batch in batches(model)]
    print("| best of ours / best of theirs | " + " | ".join(ratios) + " | | |")
    print("| aim | " + " | ".join(aims) + " | | |")


def ratio(by_side, batch):
    """Compares the medians of the better dtypes, int8 left out; "tie" where the two ranges overlap."""
    def best(mine):
        speeds = [[s["tok_s"] for s in samples if s["batch"] == batch] for side, samples in by_side.items()
                  if side.startswith("ours") == mine and not side.endswith("int8")]
        return max(filter(None, speeds), key=statistics.median, default=None)

    mine, others = best(True), best(False)
    if not mine or not others:
        return ""
    value = f"{statistics.median(mine) / statistics.median(others):.2f}"
    return f"tie ({value})" if min(mine) <= max(others) and min(others) <= max(mine) else value


def main(models, every, dtypes):
    compare.OUT.mkdir(parents=True, exist_ok=True)
    for model in models:
        if not compare.peer_model(model):
            print(f"{model}: no model; try bash {compare.SCRIPTS}/setup.sh trl")
            continue
        takers = sides(model, dtypes)
        for repeat in range(compare.REPEATS):
            print(f"{model}: round {repeat + 1} of {compare.REPEATS}", flush=True)
            for side, take in takers.items():
                for line in take():
                    sample = {"batch": line["batch"], "tok_s": line["tok_s"], "memory": line.get("peak_rss_mb")}
                    sample.update({name: line[name] for name in ("load_s", "ready_s", "prefill_s") if name in line})
                    compare.record(f"decode {model}", side, sample)
        table(model, every)


if __name__ == "__main__":
    flags = {word for word in sys.argv[1:] if word in ("--all", "--int8")}
    wanted = [word for word in sys.argv[1:] if word not in flags]
    unknown = set(wanted) - set(targets.DECODE)
    if unknown:
        sys.exit(f"[bench/peers] expected {', '.join(targets.DECODE)}, got {', '.join(sorted(unknown))}")
    main(wanted or ["260k", "15m"], "--all" in flags, compare.DTYPES + (["int8"] if "--int8" in flags else []))
