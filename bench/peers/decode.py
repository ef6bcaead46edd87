"""Tokens per second of generation beside what a user would pick instead, one after another, interleaved:

    python3 bench/peers/decode.py [--all] [--int8] [260k] [15m] [110m] [0.5b]         260k and 15m when none is named

Greedy, prompts of 64 tokens, 128 new ones, 1, 8, 32 and 64 at once (0.5b: 1, 8 and 32), both dtypes of each side.
--int8: ours with int8 weights too, which the ratio to the best peer leaves out. Environment and raw numbers as in
compare.py (its part "decode MODEL"); a peer that setup.sh has not installed is named and left out. A sample is the best
of three generations in one process.
"""

import pathlib
import statistics

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
    compare.run(command, log)
    return compare.json_lines(log)


def theirs(model, command, environment=None):
    raw = compare.OUT / "peer.jsonl"
    raw.unlink(missing_ok=True)
    command = [*command, "--batches", ",".join(batches(model)), "--reps", "3", "--budget", "10", "--out", raw]
    compare.run(command, compare.OUT / "decode-peer.log", environment)
    return compare.json_lines(raw)


def gguf(model, kind):
    """The model as llama.cpp reads it: from setup.sh, else made here once. None for fp32 of a model kept in bf16."""
    name = f"{model}-{kind}.gguf"
    if (compare.PEERS / "models/gguf" / name).exists():
        return compare.PEERS / "models/gguf" / name
    if model == "0.5b" and kind == "f32":
        return None
    return compare.run_once([compare.python("llamacpp"), compare.SCRIPTS / "hf2gguf.py", model, kind],
                            compare.OUT / "gguf" / name, compare.OUT / "hf2gguf.log")


def sides(model, dtypes):
    """By name: how one sample of each batch is taken."""
    found = {f"ours {d}": lambda d=d: ours(model, d) for d in dtypes}
    scripts, python = compare.SCRIPTS, compare.python
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
            cells.append(compare.spread([s["tok_s"] for s in samples if s["batch"] == int(batch)], 0))
        memory = max((s["memory"] for s in samples if s.get("memory")), default=0)
        loads = [s["load_s"] for s in samples if s.get("load_s") is not None]
        cells.append(f"{statistics.median(loads):.2f}" if loads else "")
        print(f"| {side} | " + " | ".join(cells) + f" | {memory:.0f} |")
    aims = [targets.shown(targets.DECODE[model].get(int(batch))) for batch in batches(model)]
    ratios = [compare.ratio(by_side, {"batch": int(batch)}) for batch in batches(model)]
    print("| best of ours / best of theirs | " + " | ".join(ratios) + " | | |")
    print("| aim | " + " | ".join(aims) + " | | |")


def main(models, every, int8):
    compare.OUT.mkdir(parents=True, exist_ok=True)
    dtypes = compare.DTYPES + ["int8"] * int8
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
    compare.call_main(main, targets.DECODE, ["260k", "15m"], ["--int8"])
