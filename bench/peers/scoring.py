"""Log-probs of given sequences beside Hugging Face's forward, log-softmax and gather, interleaved:

    python3 bench/peers/scoring.py [--all] [15m] [110m]        both when none is named

distinct: 64 rows of 192 tokens, every token but the first is scored. shared: 8 prompts of 64 tokens with 8 completions
of 128 each, whose tokens are scored; ours computes a prompt once. Both sides score the same tokens, and their values
must agree. Environment and raw numbers as in compare.py (its part "scoring MODEL"). A sample is the best of three
repeats in one process; tokens per second count all tokens of all rows.
"""

import array
import pathlib
import random
import sys

import compare
import inputs
import targets

BENCH = pathlib.Path(compare.PROGRAM).with_name("bench_scoring")
ROWS, PROMPT, COMPLETION, SAMPLES = 64, 64, 128, 8
WORKS = ("distinct", "shared")
REPEATS = "3"
MOST_DIFFERENT = {"fp32": 1e-4, "bf16": 0.1}  # of a log-prob, against Hugging Face in fp32


def rows_file(work):
    return compare.OUT / f"scoring-{work}.jsonl"


def write_rows():
    draw = random.Random(7)
    text = lambda n: [draw.randrange(inputs.SPECIALS, 32000) for _ in range(n)]
    distinct = [{"group": i, "ids": text(PROMPT + COMPLETION), "given": 1} for i in range(ROWS)]
    prompts = [text(PROMPT) for _ in range(ROWS // SAMPLES)]
    shared = [{"group": i // SAMPLES, "ids": prompts[i // SAMPLES] + text(COMPLETION), "given": PROMPT}
              for i in range(ROWS)]
    inputs.write_lines(rows_file("distinct"), distinct)
    inputs.write_lines(rows_file("shared"), shared)


def values_file(side, work):
    return compare.OUT / f"scoring-{side.replace(' ', '-')}-{work}.f32"


def files(side):
    return [path for work in WORKS for path in (rows_file(work), values_file(side, work))]


def ours(model, dtype):
    side, log = f"ours {dtype}", compare.OUT / "scoring.log"
    command = [BENCH, compare.peer_model(model), compare.COMPUTE[dtype], REPEATS, *files(side)]
    compare.run(command, log)
    return compare.json_lines(log)


def theirs(model, dtype):
    side, raw = f"HF {dtype}", compare.OUT / "peer.jsonl"
    command = [compare.PEER_PYTHON, pathlib.Path(__file__).with_name("scoring_hf.py"), compare.peer_model(model), dtype,
               REPEATS, raw, *files(side)]
    compare.run(command, compare.OUT / "scoring-HF.log", compare.best_allocator())
    return compare.json_lines(raw)


def read_values(side, work):
    values = array.array("f")
    values.frombytes(values_file(side, work).read_bytes())
    return values


def difference(side, work):
    """The largest one to Hugging Face in fp32. Ends the program where it is too large for the side's dtype."""
    mine, reference = read_values(side, work), read_values("HF fp32", work)
    if len(mine) != len(reference):
        sys.exit(f"[bench/peers] scoring {work}: {side} has {len(mine)} values, Hugging Face {len(reference)}")
    most = max(abs(a - b) for a, b in zip(mine, reference))
    if not most <= MOST_DIFFERENT[side.rsplit(" ", 1)[1]]:
        sys.exit(f"[bench/peers] scoring {work}: {side} and Hugging Face in fp32 differ by {most} in a log-prob")
    return most


def sample_round(model, there):
    lines = {f"ours {d}": ours(model, d) for d in compare.DTYPES}
    if there:
        # fp32 is the reference of the values too.
        lines.update({f"HF {d}": theirs(model, d) for d in dict.fromkeys(["fp32", *compare.DTYPES])})
    for side, found in lines.items():
        for work, line in zip(WORKS, found, strict=True):
            sample = {"work": work, "tok_s": line["tokens"] / line["s_min"], "memory": line["peak_rss_mb"],
                      "micro": line.get("micro")}
            if there:
                sample["difference"] = difference(side, work)
            compare.record(f"scoring {model}", side, sample)


def table(model, every):
    by_side = compare.samples_of(f"scoring {model}", every)
    for work in WORKS:
        print(f"\nscoring {model}, {work}: tokens per second, median over processes (least .. largest)")
        print("| side | tokens per s | largest difference to HF fp32 | peak MB of the process |")
        for side, samples in by_side.items():
            here = [s for s in samples if s["work"] == work]
            differences = [s["difference"] for s in here if "difference" in s]
            print(f"| {side} | {compare.spread([s['tok_s'] for s in here], 0)} "
                  f"| {f'{max(differences):.1e}' if differences else ''} | {max(s['memory'] for s in here):.0f} |")
        if ratio := compare.ratio(by_side, {"work": work}):
            print(f"best of ours / best of theirs: {ratio}; aim {targets.shown(targets.SCORING[model][work])}")


def main(models, every):
    compare.OUT.mkdir(parents=True, exist_ok=True)
    there = compare.PEER_PYTHON.exists()
    if not there:
        print(f"peers: none at {compare.PEER_PYTHON}; try bash {compare.SCRIPTS}/setup.sh trl. Our side runs alone.")
    write_rows()
    for model in models:
        if not compare.peer_model(model):
            print(f"{model}: no model; try bash {compare.SCRIPTS}/setup.sh trl")
            continue
        for repeat in range(compare.REPEATS):
            print(f"{model}: round {repeat + 1} of {compare.REPEATS}", flush=True)
            sample_round(model, there)
        table(model, every)


if __name__ == "__main__":
    compare.call_main(main, targets.SCORING, targets.SCORING)
