"""Our program beside what a user would pick instead, one after another, interleaved (ours, theirs, ours, …):

    python3 bench/peers/compare.py [--all] [grpo] [sft] [dpo] [start] [grpo-260k] [grpo-110m]

Of the model of 15M parameters where the part's name says no other; grpo, sft, dpo and start when none is named.
Environment: COLLIMATE the program (default build/release/bin/collimate); REPEATS (5); COLLIMATE_PEERS the directory of
the peers' scripts (default ../shared/bench/peers) and PEERS where its setup.sh installed them (default
~/.cache/collimate-peers); DTYPES of both sides, the fastest of which counts (fp32,bf16); BENCH_OUT for inputs and raw
numbers (runs/bench/peers). LOCK: a file to hold while one side runs. BENCH_OUT/results.jsonl keeps the numbers of
earlier calls, each with the time at which its call began as `run`; the tables are of this call, with --all of all.
Without the peers our side runs alone. A sample is the best steady iteration of one process; the table shows the median
over the processes, their least and largest, the ratio of the medians, or "tie" where the two ranges overlap, and the
ratio that is aimed at on a machine like this one.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import inputs
import targets

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("COLLIMATE", str(ROOT / "build/release/bin/collimate"))
SCRIPTS = pathlib.Path(os.environ.get("COLLIMATE_PEERS", ROOT.parent / "shared/bench/peers"))
PEERS = pathlib.Path(os.environ.get("PEERS", pathlib.Path.home() / ".cache/collimate-peers"))
STORIES = SCRIPTS.parents[1] / "data/models/stories260k-llama/hf-llama"
OUT = pathlib.Path(os.environ.get("BENCH_OUT", ROOT / "runs/bench/peers")).resolve()
REPEATS = int(os.environ.get("REPEATS", "5"))
DTYPES = os.environ.get("DTYPES", "fp32,bf16").split(",")
RUN = time.strftime("%Y-%m-%dT%H:%M:%S")  # this call
COMPUTE = {"fp32": "float32", "bf16": "bfloat16"}


def python(peer):
    return PEERS / peer / "bin/python"


PEER_PYTHON = python("trl")


@contextlib.contextmanager
def alone():
    """Holds LOCK, where one is named, so that nothing else runs meanwhile."""
    name = os.environ.get("LOCK")
    if not name:
        yield
        return
    with open(name, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def best_allocator():
    """The peers at their best: with tcmalloc (apt-get install libtcmalloc-minimal4), without which they are half as
    fast."""
    library = next(iter(sorted(pathlib.Path("/usr/lib").glob("*/libtcmalloc_minimal.so.4"))), None)
    if library is None:
        print("no libtcmalloc_minimal.so.4: the peers run below their best; apt-get install libtcmalloc-minimal4")
        return dict(os.environ)
    return {**os.environ, "LD_PRELOAD": str(library)}


def run(command, log, environment=None):
    """Seconds and peak memory in MB of one process; its output goes to `log`."""
    command = list(map(str, command))
    with alone(), open(log, "w") as output:
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
    if status != 0:
        sys.exit(f"[bench/peers] {' '.join(command)} ended with {status}; see {log}")
    return seconds, usage.ru_maxrss / 1024


def run_once(command, made, log):
    """`made`, which the command, with a path as its last word, writes where it is not there yet."""
    if not made.exists():
        made.parent.mkdir(exist_ok=True)
        part = made.with_suffix(".part")
        run([*command, part], log)
        part.rename(made)
    return made


def json_lines(path):
    """The JSON of a file's lines, without what else a program has printed."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]


def record(part, side, sample):
    with open(OUT / "results.jsonl", "a") as file:
        file.write(json.dumps({"run": RUN, "part": part, "side": side, **sample}) + "\n")


def ours(part, dtype):
    target = OUT / f"run-{part}"
    command = [PROGRAM, "train", OUT / f"{part}.yaml", "--output", target, "--resume", "never",
               "--set", f"models.policy.compute={COMPUTE[dtype]}"]
    subprocess.run(["rm", "-rf", target], check=True)
    _, memory = run(command, OUT / f"{part}.log")
    steps = json_lines(target / "metrics.jsonl")
    best = min(steps[1:], key=lambda s: s["timing_s/step"])
    sample = {"seconds": best["timing_s/step"], "first": steps[0]["timing_s/step"], "memory": memory}
    for name, key in (("generation", "gen"), ("reference", "ref"), ("update", "update_actor"), ("reward", "reward")):
        if f"timing_s/{key}" in best:
            sample[name] = best[f"timing_s/{key}"]
    record(part, f"ours {dtype}", sample)


def peer(part, side, script, *arguments):
    raw = OUT / "peer.jsonl"
    raw.unlink(missing_ok=True)
    command = [PEER_PYTHON, SCRIPTS / script, *arguments, "--out", raw]
    run(command, OUT / f"{side.replace(' ', '-')}.log", best_allocator())
    line = json_lines(raw)[-1]
    sample = {"seconds": line["s_min"], "memory": line["peak_rss_mb"]}
    sample["first"] = line.get("first_iter_s", line.get("first_step_s"))
    for name, key in (("generation", "gen_s"), ("reference", "ref_s"), ("update", "train_s")):
        if key in line:
            sample[name] = line[key]
    record(part, side, sample)


def peer_model(size):
    """The directory of the peers' model, or None where it is not there."""
    directory = STORIES if size == "260k" else PEERS / "models" / size
    return directory if (directory / "model.safetensors").exists() else None


def peers_of(part):
    """By dtype: name, script and arguments of what runs beside ours."""
    if part == "start":
        return []
    task, size = part.split("-")[0], inputs.CONFIGS[part][0]
    if task == "grpo":
        return [(f"TRL {d}", "grpo_trl.py", "--model", size, "--dtype", d, "--iters", "2") for d in DTYPES]
    torch = [(f"torch loop {d}", "train_torch.py", "--models", size, "--tasks", task, "--dtypes", d, "--steps", "3")
             for d in DTYPES]
    return torch + [(f"TRL {d}", "train_trl.py", "--model", size, "--task", task, "--dtype", d, "--steps", "3")
                    for d in DTYPES]


def start():
    """From starting the program on the 15M model, with a prompt of 64 tokens, to the first token on the terminal."""
    if not (OUT / "model/model.safetensors").exists():
        print(f"start: no weights in {OUT / 'model'}; they come from the peers")
        return
    prompt = "".join(inputs.CHARACTERS[:64])
    command = [PROGRAM, "generate", OUT / "model", "--prompt", prompt, "--max-tokens", "1", "--temperature", "0"]
    seconds, memory = run(command, OUT / "start.log")
    record("start", "ours", {"seconds": seconds, "memory": memory})


def samples_of(part, every=False):
    """By side: the samples of this call, with `every` those of earlier ones too."""
    by_side = {}
    for sample in json_lines(OUT / "results.jsonl"):
        if sample["part"] == part and (every or sample.get("run") == RUN):
            by_side.setdefault(sample["side"], []).append(sample)
    return by_side


def spread(values, digits):
    """Gives the values' median (least .. largest), "" of no value."""
    low, high = min(values, default=0), max(values, default=0)
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f} .. {high:.{digits}f})" if values else ""


def overlap(mine, others):
    return min(mine) <= max(others) and min(others) <= max(mine)


def ratio(by_side, chosen, column="tok_s"):
    """The medians of the better dtypes and programs of ours and theirs, int8 left out, divided: of `column` in the
    samples with the numbers `chosen`. "tie" where the two ranges overlap, "" where a side has none."""
    def best(mine):
        found = [[s[column] for s in samples if chosen.items() <= s.items()] for side, samples in by_side.items()
                 if side.startswith("ours") == mine and not side.endswith("int8")]
        return max(filter(None, found), key=statistics.median, default=None)

    mine, others = best(True), best(False)
    if not mine or not others:
        return ""
    value = f"{statistics.median(mine) / statistics.median(others):.2f}"
    return f"tie ({value})" if overlap(mine, others) else value


def best_sides(by_side):
    """Keeps the dtype with the least median of each program: 'TRL fp32' and 'TRL bf16' make one line."""
    median = lambda side: statistics.median(s["seconds"] for s in by_side[side])
    best = {}
    for side in by_side:
        program = side.rsplit(" ", 1)[0]
        if program not in best or median(side) < median(best[program]):
            best[program] = side
    return [(side, by_side[side]) for side in best.values()]


def table(part, every):
    sides = best_sides(samples_of(part, every))
    if not sides:
        return
    mine = [s["seconds"] for side, samples in sides if side.startswith("ours") for s in samples]
    columns = ["first", "generation", "reference", "update", "reward", "memory"]
    print(f"\n{part}: seconds (memory: MB)")
    print("| side | median | least .. largest | runs | ratio to ours | aim | " + " | ".join(columns) + " |")
    for side, samples in sides:
        seconds = sorted(s["seconds"] for s in samples)
        ratio = statistics.median(seconds) / statistics.median(mine) if mine else float("nan")
        tie = not side.startswith("ours") and mine and overlap(mine, seconds)
        cells = [f"{statistics.median(seconds):.3f}", f"{seconds[0]:.3f} .. {seconds[-1]:.3f}", str(len(samples)),
                 f"tie ({ratio:.2f})" if tie else f"{ratio:.2f}",
                 targets.shown(targets.TRAINING.get(part, {}).get(side.rsplit(" ", 1)[0]))]
        for column in columns:
            values = [s[column] for s in samples if s.get(column) is not None]
            cells.append(f"{statistics.median(values):.{0 if column == 'memory' else 2}f}" if values else "")
        print(f"| {side} | " + " | ".join(cells) + " |")


def main(parts, every):
    OUT.mkdir(parents=True, exist_ok=True)
    there = PEER_PYTHON.exists() and SCRIPTS.is_dir()
    if not there:
        print(f"peers: none at {PEER_PYTHON}; try bash {SCRIPTS}/setup.sh trl. Our side runs alone.")
    inputs.write(OUT, ["sft" if part == "start" else part for part in parts], peer_model)
    for repeat in range(REPEATS):
        print(f"round {repeat + 1} of {REPEATS}", flush=True)
        for part in parts:
            if part == "start":
                start()
                continue
            for dtype in DTYPES:
                ours(part, dtype)
            for side in peers_of(part) if there else []:
                peer(part, *side)
    for part in parts:
        table(part, every)


def call_main(main, known, usual, flags=()):
    """main(words, all, *flags) with the words of the command line, of those that are known."""
    given = ["--all", *flags]
    wanted = [word for word in sys.argv[1:] if word not in given]
    if unknown := set(wanted) - set(known):
        sys.exit(f"[bench/peers] expected {', '.join(known)}, got {', '.join(sorted(unknown))}")
    main(wanted or list(usual), *(flag in sys.argv[1:] for flag in given))


if __name__ == "__main__":
    call_main(main, [*inputs.CONFIGS, "start"], ["grpo", "sft", "dpo", "start"])
