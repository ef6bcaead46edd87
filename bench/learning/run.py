#!/usr/bin/env python3
"""Tries every algorithm on one task with several seeds, and says which of them learn.

  bench/learning/run.py [--output DIRECTORY] [--results FILE] [--seeds N] [--only WORD …] [--jobs N] [--page FILE]
                        [--reduced] [PROGRAM]

A seed has a task of its own (that of `collimate bench quickstart`: a small Llama learns to sort six digits), a first
model, which has learned from 120 demonstrations, a teacher, and answers that the first model drew. From there each
trial of algorithms.py trains for a minute at most, and the trials of a kind share a run at learning rate 0. A trial
counts as learning if its held-out number, as a mean over the seeds, ends above that of these runs by more than twice
their spread, the largest less the smallest. A run that has ended has a line in FILE (by default results.jsonl beside
this program, of which the table of docs/results.md is made) and is not run again; remove lines to run them again.
--only runs the trials whose kind or name has one of the words. --page rewrites the table in FILE. --reduced trains for
two iterations, as a smoke test.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import threading
import time

import algorithms

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- bench/learning/run.py writes this table -->", "<!-- end of the table -->"
PROBLEMS = 4000


def rows_of(path: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_rows(path: pathlib.Path, rows: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def filled(value, places: dict):
    """The value with the places in braces of its texts filled in."""
    if isinstance(value, dict):
        return {key: filled(item, places) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, places) for item in value]
    return value.format(**places) if isinstance(value, str) and value.startswith("{") else value


def merged(config: dict, more: dict) -> dict:
    out = {**config}
    for key, value in more.items():
        out[key] = merged(out.get(key, {}), value) if isinstance(value, dict) else value
    return out


class Seed:
    """The task, first model, teacher and rows of one seed."""

    def __init__(self, bench: "Bench", seed: int):
        self.bench, self.seed, self.root = bench, seed, bench.output / f"seed-{seed}"
        self.places = {"task": str(self.root / "task"), "data": str(self.root / "data"),
                       "start": str(self.root / "first" / "model"), "teacher": str(self.root / "teacher" / "model")}

    def prepare(self) -> None:
        data = self.root / "data"
        if (data / "held_out_steps.jsonl").exists():
            return
        self.bench.call("bench", "quickstart", "--task-only", "--seed", str(self.seed), "--output", str(self.root))
        problems = rows_of(self.root / "task/problems.jsonl")[:64 if self.bench.reduced else PROBLEMS]
        answers = [{"prompt": row["prompt"], "completion": row["ground_truth"]} for row in problems]
        write_rows(data / "answers.jsonl", answers)
        write_rows(data / "text.jsonl", [{"text": row["prompt"] + row["completion"]} for row in answers])
        self.learn("first", self.root / "task/demonstrations.jsonl", 150)
        self.learn("teacher", data / "answers.jsonl", 600)
        own = self.drawn("problems", problems)
        write_rows(data / "own.jsonl", [{"prompt": row["prompt"], "completion": row["completion"]} for row in own
                                         if row["completion"]])
        write_rows(data / "marked.jsonl", [{"prompt": row["prompt"], "completion": row["completion"],
                                            "label": row["reward"] == 1} for row in own])
        write_rows(data / "pairs.jsonl", self.pairs(own))
        held_out = self.drawn("held_out", rows_of(self.root / "task/held_out.jsonl"))
        write_rows(data / "held_out_pairs.jsonl", self.pairs(held_out))
        write_rows(data / "steps.jsonl", self.steps(own))
        write_rows(data / "held_out_steps.jsonl", self.steps(held_out))

    def learn(self, name: str, data: pathlib.Path, iterations: int) -> None:
        """Trains a model on right answers, from random weights."""
        config = {"recipe": "sft",
                  "models": {"policy": {"path": f"{self.root}/task/start", "from_scratch": True,
                                        "initializer_std": 0.02}},
                  "data": {"train": str(data)},
                  "train": {"samples_per_update": 32, "learning_rate": 1e-3, "weight_decay": 0.1,
                            "warmup_updates": 10},
                  "run": {"iterations": iterations, "seed": self.seed}}
        self.bench.train(config, self.root / name)

    def drawn(self, name: str, problems: list[dict]) -> list[dict]:
        """Four answers of the first model to each problem, with rewards."""
        asked, out = self.root / "data" / f"{name}.jsonl", self.root / "data" / f"{name}_drawn.jsonl"
        write_rows(asked, problems)
        self.bench.call("generate", self.places["start"], "--data", str(asked), "--output", str(out), "-n", "4",
                        "--temperature", "1", "--max-tokens", "10", "--reward", "exact", "--seed", str(self.seed))
        return rows_of(out)

    @staticmethod
    def pairs(drawn: list[dict]) -> list[dict]:
        """A pair of each problem that has a right and a wrong answer."""
        found: dict[str, dict] = {}
        for row in drawn:
            found.setdefault(row["prompt"], {}).setdefault(row["reward"] == 1, row["completion"])
        return [{"prompt": prompt, "chosen": answers[True], "rejected": answers[False]}
                for prompt, answers in found.items() if len(answers) == 2]

    @staticmethod
    def steps(drawn: list[dict]) -> list[dict]:
        """Answers of which each digit is a step, right where it stands in its place: those with as many right steps as
        wrong ones, so that who calls all alike has half of them."""
        rows = [{"prompt": row["prompt"], "completions": list(row["completion"]),
                 "labels": [said == digit for said, digit in zip(row["completion"], row["ground_truth"])]}
                for row in drawn if 0 < len(row["completion"]) <= len(row["ground_truth"])]
        return [row for row in rows if 2 * sum(row["labels"]) == len(row["labels"])]

    def run(self, trial: algorithms.Trial, still: bool) -> None:
        """Runs a trial of this seed, or, where it is to stand `still`, its kind at learning rate 0."""
        kind = algorithms.KINDS[trial.kind]
        name = f"{trial.kind}-{'still' if still else re.sub('[^a-z0-9]+', '-', trial.name.lower())}-{self.seed}"
        said = "" if still else trial.name
        if (trial.kind, said, self.seed) in self.bench.ended:
            return
        config = merged(kind.config, {"run": {"seed": self.seed}})
        if still:
            config = merged(config, {"train": {"learning_rate": 0.0}})
        else:
            config = merged(merged(config, {"algorithm": trial.algorithm}), trial.more)
        directory = self.root / "runs" / name
        begin = time.monotonic()
        problem = self.bench.train(filled(config, self.places), directory, stops=False)
        row = {"kind": trial.kind, "name": said, "seed": self.seed, "problem": problem}
        if not problem:
            summary = json.loads((directory / "summary.json").read_text())
            row |= {"before": summary["first_evaluation"][kind.metric],
                    "after": summary["last_evaluation"][kind.metric], "seconds": summary["seconds"],
                    "iterations": summary["iterations"]}
        with self.bench.lock, self.bench.results.open("a") as file:
            file.write(json.dumps(row) + "\n")
        shutil.rmtree(directory, ignore_errors=True)
        print(f"{name}: {problem or '{before:.3f} -> {after:.3f}'.format(**row)} "
              f"({time.monotonic() - begin:.0f} s)", flush=True)


class Bench:
    """The program, and where it works."""

    def __init__(self, arguments: argparse.Namespace):
        self.program, self.output = arguments.program, arguments.output.resolve()
        self.reduced, self.results, self.lock = arguments.reduced, arguments.results, threading.Lock()
        self.ended = {(row["kind"], row["name"], row["seed"]) for row in self.rows()}
        self.environment = os.environ if arguments.jobs == 1 else {**os.environ, "OMP_NUM_THREADS": "1"}

    def rows(self) -> list[dict]:
        return rows_of(self.results) if self.results.exists() else []

    def call(self, *words: str, stops: bool = True) -> str:
        """Runs the program. Returns the end of what it says where it fails, or ends this program."""
        done = subprocess.run([self.program, *words], capture_output=True, text=True, env=self.environment)
        if done.returncode == 0:
            return ""
        problem = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1]
        if stops or done.returncode < 0:  # a signal is not the algorithm's failure
            raise SystemExit(f"{' '.join(words)}: {problem}")
        return problem

    def train(self, config: dict, directory: pathlib.Path, stops: bool = True) -> str:
        if self.reduced:
            config = merged(config, {"run": {"iterations": 2}, "train": {"warmup_updates": 0}})
        file = directory.with_suffix(".yaml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(config, indent=1))
        return self.call("train", str(file), "--output", str(directory), stops=stops)


def table(results: list[dict]) -> list[str]:
    """The lines of the page's table, and a line that counts."""
    lines = ["| algorithm | before | after | at learning rate 0 | effect | needed | learns |",
             "|---|---|---|---|---|---|---|"]
    learned = tried = 0
    for kind, common in algorithms.KINDS.items():
        own = [row for row in results if row["kind"] == kind]
        still = [row["after"] for row in own if not row["name"] and not row["problem"]]
        if not still:
            continue
        lines.append(f"| **{common.title}** | | | | | | |")
        needed = 2 * (max(still) - min(still))
        for trial in (one for one in algorithms.trials() if one.kind == kind):
            rows = [row for row in own if row["name"] == trial.name]
            failed = [row["problem"] for row in rows if row["problem"]]
            if failed:
                tried += 1
                lines.append(f"| {trial.name} | | | | | | **failed**: {failed[0]} |")
            if failed or len(rows) < len(still):  # not run with all seeds yet
                continue
            after = [100 * row["after"] for row in rows]
            effect = statistics.mean(after) - 100 * statistics.mean(still)
            learns = effect > 100 * needed
            learned, tried = learned + learns, tried + 1
            lines.append(f"| {trial.name} | {100 * statistics.mean(row['before'] for row in rows):.1f} | "
                         f"{statistics.mean(after):.1f} ({min(after):.1f} to {max(after):.1f}) | "
                         f"{100 * statistics.mean(still):.1f} | {effect:+.1f} | {100 * needed:.1f} | "
                         f"{'yes' if learns else '**no**'} |")
    seconds = [row["seconds"] for row in results if not row["problem"]]
    lines += ["", f"{learned} of {tried} algorithms learn; {len(results)} runs, of {min(seconds):.0f} to "
                  f"{max(seconds):.0f} seconds each."] if seconds else []
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default=str(ROOT / "build/release/bin/collimate"))
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "runs/bench/learning")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path(__file__).with_name("results.jsonl"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--jobs", type=int, default=1, help="how many runs at a time, each with one thread")
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--reduced", action="store_true")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    seeds = [Seed(bench, seed) for seed in range(1, arguments.seeds + 1)]
    wanted = [trial for trial in algorithms.trials()
              if not arguments.only or any(word in f"{trial.kind} {trial.name}" for word in arguments.only)]
    first = {trial.kind: trial for trial in reversed(wanted)}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(Seed.prepare, seeds))
        runs = [(seed, trial, True) for trial in first.values() for seed in seeds]
        runs += [(seed, trial, False) for trial in wanted for seed in seeds]
        list(pool.map(lambda one: one[0].run(*one[1:]), runs))
    lines = table(bench.rows())
    print("\n".join(lines))
    if arguments.page:
        before, rest = arguments.page.read_text().split(BEGIN)
        arguments.page.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
