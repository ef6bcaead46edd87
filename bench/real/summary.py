"""Held-out quality before and after a run, one line a measure: python3 bench/real/summary.py RUN_DIRECTORY"""

import json
import pathlib
import sys


def reached(steps, key, seconds):
    """The last value of a measure within so many seconds, with its step; None when the run was not that long."""
    within = [s for s in steps if key in s and s["time_seconds"] <= seconds]
    return within[-1] if within and steps[-1]["time_seconds"] > seconds else None


def main(directory):
    lines = (pathlib.Path(directory) / "metrics.jsonl").read_text().splitlines()
    steps = [json.loads(line) for line in lines]
    name = pathlib.Path(directory).name
    for key in sorted({k for s in steps for k in s if k.startswith("val/")}):
        values = [(s["step"], s[key]) for s in steps if key in s]
        first, last = values[0], values[-1]
        print(f"{name}: {key} {first[1]:.4g} (step {first[0]}) -> {last[1]:.4g} (step {last[0]})")
        for minutes in (10, 30):
            step = reached(steps, key, 60 * minutes)
            if step:
                print(f"{name}: {key} after {minutes} minutes {step[key]:.4g} (step {step['step']})")
    for key in ("critic/rewards/mean", "actor/kl_loss", "actor/reward_kl_penalty", "response_length/mean"):
        values = [s[key] for s in steps if key in s]
        if values:
            print(f"{name}: {key} {values[0]:.4g} -> {values[-1]:.4g}")
    print(f"{name}: {steps[-1]['step']} iterations in {steps[-1]['time_seconds']:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1])
