#!/usr/bin/env python3
"""Builds and runs the test programs of a sanitizer, two at a time, and adds up results as tools/run_tests.py does.

  tools/sanitize.py asan|tsan [--jobs N] [--minutes N]

asan is AddressSanitizer and UndefinedBehaviorSanitizer: all unit tests, and parts of parity and e2e. tsan is
ThreadSanitizer: the folders with threads of their own. The preset of the same name is configured already. Programs
whose folders changed last come first, and the others in an order that each commit draws anew. After so many minutes no
further program begins, so that a slow machine without a cache of compiled files comes to its end: the line `left for
the next runs` names those, and a few commits see them all.
Exit code 1 on a failure, and on a skip when the shared data is there.
"""
import argparse
import hashlib
import pathlib
import subprocess
import sys
import time

import run_tests
from checks import changes

AT_ONCE = 2
# The folders with threads of their own
THREADED = ("base", "host", "comm", "cluster", "flow", "generate", "serve")
# Gtest filters. They leave out what takes minutes under a sanitizer, in code that shorter tests run too: searches that
# weigh each of many placements, plans of moves between 256 ranks, training in each of many layouts. Threads as ranks,
# which sanitizers slow most, compute every family by the same code: two in ten do there. Of the system tests those run
# that have every phase of a model beside the others, losses over threads, weights that move, and whole runs of the
# smallest task, with workers as child processes and on two devices.
PARTS = {"asan": {
    "plan": "-Search.IsTheBestOfAll*:Search.ItsWorkIsBounded:Search.TheSimulatorAgrees"
            ":LocalSearch.FindsWhatLookingAtAllDoes:Synchrony.NoPeriodIsShorterThanADevicesWork"
            ":Shadow.IsNoSlowerThanOneModel:PlanText.WholeModelsThatFitNowhereGetOtherLayouts"
            ":PlanText.WhatCannotFitGetsTheNumberOfDevicesThatDoes",
    "shape": "-TransferPlan.LargeModelsArePlanned",
    "train": "-DataRanks.AnotherLayoutGoesOnFromTheSharesOfOne:DataRanks.AnyLayoutUpdatesAsOneRank",
    "model": "-HuggingFace.FormOfFilesIsKept" + "".join(f":*Parity.*/*{digit}" for digit in "12345689"),
    "parity": "Mismatch.*:MovedWeights.*:Progress.*:Invariance.ThreadRanks*",
    "e2e": "Walls.AWorkerAsAChildProcess:Walls.GenerationApartFromTrainingHasEqualBits"}}


def folders_of(preset: str, build: pathlib.Path) -> list:
    """Names the folders whose programs run: unit tests as the build lists them, and of the others those with a part."""
    listed = [line.split() for line in (build / "tests.txt").read_text().splitlines()]
    units = [pathlib.Path(path).name.removesuffix("_test") for kind, path in listed if kind == "unit"]
    return list(dict.fromkeys([*units, *PARTS[preset]])) if preset in PARTS else list(THREADED)


def ordered(folders: list) -> list:
    """Gives the folders in the order in which they run."""
    changed = [path.split("/")[1] for path in changes.changed_files()[1] if path.startswith(("collimate/", "tests/"))]
    first = [folder for folder in dict.fromkeys(changed) if folder in folders]
    head = changes.git("rev-parse", "HEAD")
    return first + sorted(set(folders) - set(first), key=lambda f: hashlib.sha256((head + f).encode()).hexdigest())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", choices=["asan", "tsan"])
    parser.add_argument("--jobs", type=int, default=2, help="compilers at once")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    options = parser.parse_args()
    end, build = time.monotonic() + 60 * options.minutes, run_tests.ROOT / "build" / options.preset
    left, results = ordered(folders_of(options.preset, build)), []
    while left and time.monotonic() < end:
        now, left = left[:AT_ONCE], left[AT_ONCE:]
        subprocess.run(["ninja", "-C", build, "-j", str(options.jobs), *(f"{folder}_test" for folder in now)],
                       stdout=sys.stderr, check=True)
        parts = PARTS.get(options.preset, {})
        results += run_tests.run_all(
            # Sanitizers see what a program does once; on the checked device `make test` runs it.
            run_tests.programs(build, "unit", now, [f"{f}_test={parts[f]}" for f in now if f in parts], once=True),
            build, timeout=1800)
    if left:
        print(f"left for the next runs, as {options.minutes:g} minutes are over: {' '.join(left)}")
    if not results:
        print("0 passed, 0 failed, 0 skipped")
        return 0
    return run_tests.conclude(results)


if __name__ == "__main__":
    sys.exit(main())
