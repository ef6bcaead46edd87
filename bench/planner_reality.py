"""The planner against this machine: predicted and measured seconds of an iteration on two CPU devices of one thread.

    python3 bench/planner_reality.py [--rounds 5] [--iterations 6] [--random 20] [--devices 2] [quickstart] [stories]

For each config, quickstart's GRPO and configs/stories-ppo.yaml (four models): `collimate calibrate` fits the constants,
`collimate plan` lists its choice and the best placement of every other form, and further placements are drawn. Each is
predicted by `collimate simulate`, then executed in interleaved rounds, a process each. Measured is the median over the
rounds of a run's median iteration, the first left out; in brackets the quartiles over all its iterations.

Environment: COLLIMATE the program (default: build/release/bin/collimate), COLLIMATE_SHARED the test data (default:
../shared, for stories), COLLIMATE_RUNS where all of it goes (default: runs/planner). Exit code 1 where the choice is
predicted more than 20 % off, or a placement that was executed beats it by more than 10 % beyond the spread.
"""

import argparse
import itertools
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
COLLIMATE = pathlib.Path(os.environ.get("COLLIMATE", ROOT / "build/release/bin/collimate")).resolve()
SHARED = pathlib.Path(os.environ.get("COLLIMATE_SHARED", ROOT.parent / "shared")).resolve()
OUT = pathlib.Path(os.environ.get("COLLIMATE_RUNS", ROOT / "runs/planner")).resolve()
ENVIRONMENT = {**os.environ, "COLLIMATE": str(COLLIMATE), "COLLIMATE_SHARED": str(SHARED),
               "COLLIMATE_REAL": str(OUT / "data"), "COLLIMATE_REWARD_MODEL": str(OUT / "reward-model/model")}
MOST_ERROR, MOST_GAIN = 0.2, 0.1


def run(command, check=True):
    done = subprocess.run(list(map(str, command)), cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
    if check and done.returncode != 0:
        sys.exit(f"[bench/planner_reality.py] {' '.join(map(str, command))}\n{done.stderr}")
    return done


def collimate(*words, check=True):
    return run([COLLIMATE, *words], check)


def train(config, output, *sets):
    shutil.rmtree(output, ignore_errors=True)
    flags = [word for text in sets for word in ("--set", text)]
    return collimate("train", config, "--output", output, "--resume", "never", *flags, check=False)


def quickstart_config():
    """GRPO from a policy that a short SFT has taught the form."""
    folder = OUT / "quickstart"
    if not (folder / "grpo/model").exists():
        collimate("bench", "quickstart", "--single", "--reduced", "--output", folder)
    return folder / "grpo.yaml"


def stories_config():
    """PPO with a reward model of a few updates: what it says does not matter here, its size does."""
    if not (OUT / "reward-model/model").exists():
        data = OUT / "data"
        run([sys.executable, ROOT / "bench/real/prepare.py", data])
        told = collimate("generate", data / "stories", "--prompt", "", "--n", 60, "--max-tokens", 96, "--seed", 1,
                         "--json")
        (data / "stories.json").write_text(told.stdout)
        run([sys.executable, ROOT / "bench/real/make_pairs.py", data / "stories.json", data / "pairs.jsonl",
             data / "pairs_held_out.jsonl", "--held-out", 16])
        done = train(ROOT / "configs/stories-reward-model.yaml", OUT / "reward-model", "run.iterations=4",
                     "run.save_every=0", "train.warmup_updates=0", "train.samples_per_update=16")
        if done.returncode != 0:
            sys.exit(f"[bench/planner_reality.py] stories-reward-model\n{done.stderr}")
    return ROOT / "configs/stories-ppo.yaml"


CONFIGS = {"quickstart": quickstart_config, "stories": stories_config}


def seats(placement):
    """Model -> its devices."""
    return {model: tuple(sorted(group["devices"])) for group in placement["groups"].values()
            for model in group["models"]}


def key(places, devices):
    """Does the same for placements that differ in the numbers of the devices alone."""
    orders = itertools.permutations(range(devices))
    return min(tuple(sorted((model, tuple(sorted(order[d] for d in on))) for model, on in places.items()))
               for order in orders)


def placement_of(places, devices):
    groups = {}
    for model, on in sorted(places.items()):
        groups.setdefault(on, []).append(model)
    return {"version": 1, "devices": {"count": devices, "kind": "cpu"},
            "groups": {f"group{i}": {"devices": list(on), "models": models}
                       for i, (on, models) in enumerate(groups.items())}}


def drawn(known, count, devices):
    """Further placements of the same models on all devices, in a fixed random order."""
    seen = {key(seats(placement), devices) for placement in known}
    models = sorted(seats(known[0]))
    choices = [on for size in range(1, devices + 1) for on in itertools.combinations(range(devices), size)]
    rng, found = random.Random(1), []
    for _ in range(1000 * count):
        if len(found) == count:
            break
        places = {model: rng.choice(choices) for model in models}
        if len({d for on in places.values() for d in on}) < devices or key(places, devices) in seen:
            continue
        seen.add(key(places, devices))
        found.append(placement_of(places, devices))
    return found


def text_of(placement):
    groups = {}
    for model, on in seats(placement).items():
        groups.setdefault(on, []).append(model)
    return ", ".join(f"{'+'.join(sorted(models))} on {'+'.join(map(str, on))}" for on, models in sorted(groups.items()))


class Candidate:
    def __init__(self, name, placement, file):
        self.name, self.placement, self.file = name, placement, file
        self.file.write_text(json.dumps(placement, indent=1))
        self.predicted, self.medians, self.iterations, self.failure = None, [], [], ""

    def predict(self, config, machine, devices):
        done = collimate("simulate", self.file, "--config", config, "--cluster", f"1x{devices}xcpu",
                         "--constants", machine, "--json", check=False)
        if done.returncode == 0:
            self.predicted = json.loads(done.stdout)["period_seconds"]
        else:
            self.failure = done.stderr.strip().splitlines()[-1]

    def execute(self, config, iterations):
        output = OUT / "run"
        done = train(config, output, f"placement={self.file}", "data.eval=null", "run.threads=1", "run.save_every=0",
                     "run.samples_every=0", f"run.iterations={iterations}")
        if done.returncode != 0:
            self.failure = done.stderr.strip().splitlines()[-1]
            return
        lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
        seconds = [line["timing_s/step"] for line in lines if line["step"] > 1]
        self.medians.append(statistics.median(seconds))
        self.iterations += seconds

    @property
    def measured(self):
        return statistics.median(self.medians)

    @property
    def quartiles(self):
        first, _, third = statistics.quantiles(self.iterations, n=4)
        return first, third

    @property
    def error(self):
        return self.predicted / self.measured - 1

    def beats(self, choice):
        """By more than the bound, and beyond what either spreads over."""
        return self.measured < (1 - MOST_GAIN) * choice.measured and self.quartiles[1] < choice.quartiles[0]

    def row(self):
        if self.failure:
            return f"| {self.name} | {text_of(self.placement)} | not executed: {self.failure} | | |"
        low, high = self.quartiles
        return (f"| {self.name} | {text_of(self.placement)} | {self.predicted:.3f} | {self.measured:.3f} "
                f"({low:.3f} - {high:.3f}) | {100 * self.error:+.0f} % |")


def candidates_of(name, config, machine, options):
    """The planner's choice first, then the best of the other forms, then those that are drawn."""
    planned = json.loads(collimate("plan", config, "--cluster", f"1x{options.devices}xcpu", "--constants", machine,
                                   "--json").stdout)["plans"]
    folder = OUT / f"{name}-placements"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    named = [(plan["form"], plan["placement"]) for plan in planned]
    named += [("drawn", placement) for placement in drawn([p for _, p in named], options.random, options.devices)]
    return [Candidate("choice: " + form if i == 0 else form, placement, folder / f"{i}.yaml")
            for i, (form, placement) in enumerate(named)]


def compare(name, options):
    config = CONFIGS[name]()
    machine = OUT / f"{name}-machine.yaml"
    told = json.loads(collimate("calibrate", config, "--devices", options.devices, "--output", machine,
                                "--json").stdout)
    print(f"\n== {name}: {config}, {told['processor']}; prompt {told['prompt']}, completion {told['completion']}\n")
    print("| run | function | rows | measured s | fitted s |\n|---|---|---|---|---|")
    for m in told["measurements"]:
        print(f"| {m['run']} | {m['function']} | {m['rows']:.0f} | {m['measured_seconds']:.4f} "
              f"| {m['fitted_seconds']:.4f} |")
    candidates = candidates_of(name, config, machine, options)
    for candidate in candidates:
        candidate.predict(config, machine, options.devices)
    for number in range(options.rounds):
        for candidate in candidates:
            if not candidate.failure:
                candidate.execute(config, options.iterations)
        print(f"{name}: round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    print("\n| placement | models | predicted s | measured s (quartiles) | error |\n|---|---|---|---|---|")
    for candidate in candidates:
        print(candidate.row())
    return judge(name, candidates)


def judge(name, candidates):
    """Prints how far off the predictions are and what beats the choice; whether the bounds hold."""
    ran = [c for c in candidates if not c.failure]
    choice = candidates[0]
    if choice.failure or len(ran) < 3:
        print(f"\n{name}: {len(ran)} placements were executed, of at least 3 with the choice among them")
        return False
    errors = [abs(c.error) for c in ran]
    better = [c for c in ran if c.beats(choice)]
    print(f"\n{name}: {len(ran)} placements executed; error of the choice {100 * choice.error:+.0f} %, of all in the "
          f"median {100 * statistics.median(errors):.0f} %, at most {100 * max(errors):.0f} %")
    for candidate in better:
        print(f"{name}: {candidate.name} ({text_of(candidate.placement)}) takes {candidate.measured:.3f} s, the choice "
              f"{choice.measured:.3f} s")
    if not better:
        print(f"{name}: none beats the choice by more than {100 * MOST_GAIN:.0f} % beyond the spread")
    return abs(choice.error) <= MOST_ERROR and not better


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configs", nargs="*", metavar="CONFIG", help="quickstart or stories; both when none is named")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=6, help="of each run, the first not counted; at least 3")
    parser.add_argument("--random", type=int, default=20, help="placements that are drawn beside those of the planner")
    parser.add_argument("--devices", type=int, default=2)
    options = parser.parse_args()
    names = options.configs or list(CONFIGS)
    for name in names:
        if name not in CONFIGS:
            parser.error(f"expected {' or '.join(CONFIGS)}, got {name}")
    if options.iterations < 3 or options.rounds < 1:
        parser.error("expected at least 3 iterations and 1 round")
    OUT.mkdir(parents=True, exist_ok=True)
    held = [compare(name, options) for name in names]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
