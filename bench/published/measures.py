"""A row of a results file measured this, in the terms of a predicted iteration."""
from words import NotModelled, finite, has, match, number

STEPS = ("iteration", "step", "step 3", "step 3 epoch", "episode", "full run", "effective")
# Phases of one iteration by their names in papers; those of the prediction are in predict.h.
PARTS = {"gen": "generation", "generate_sequences": "generation", "rollout total": "generation",
         "generation": "generation", "rollout tail": "tail", "wait_prev_gen": "waiting", "old_log_prob": "log_probs",
         "update_actor": "training", "training": "training", "update_critic": "critic_train", "weight sync": "transfer",
         "transition": "transfer", "reshard": "transfer", "resharding": "transfer", "update_weights": "transfer"}
SECONDS = {"": "s", "s": "s", "s/iteration": "s", "s/step": "s", "s/episode": "s", "ms": "ms", "h": "h",
           "h/epoch": "h", "min": "min"}
RATES = ("PFLOP/s", "samples/s", "samples/s/GPU", "tok/s", "tok/s/GPU", "TFLOP/s/GPU")


def part_of(phase, run):
    """The part of the prediction that a phase speaks of; "" for none."""
    if phase in STEPS or has(phase, "epoch") or has(phase, "effective training"):
        return "step"
    if phase == "generation" and run["sharing"] == "two_sides":
        return "waiting"
    if phase == "ref":
        phase = "ref" if "ref" in run["models"] else "old_log_prob"
    part = "ref" if phase == "ref" else PARTS.get(phase, "")
    missing = {"log_probs": not run["recomputes_log_probs"], "critic_train": "critic" not in run["models"]}
    return "" if missing.get(part) else part


def parts_of(text, run):
    """Gives the seconds of one phase, or of several joined by "+"."""
    parts = [part_of(phase.strip(" "), run) for phase in text.split("+")]
    if "" in parts:
        raise NotModelled(f"phase '{text}' is not modelled")
    return parts


def time_of(unit, run):
    if (steps := number(unit, r"h/([0-9]+) steps", 0)) > 0:
        return {"unit": "h", "iterations": steps}
    if unit not in SECONDS:
        raise NotModelled(f"unit {unit} is not modelled")
    of_run = SECONDS[unit] in ("h", "min")
    if of_run and run["run_rows"] <= 0:
        raise NotModelled("rows of a run or epoch not given")
    return {"unit": SECONDS[unit], "rows": run["run_rows"] if of_run else 0}


def throughput_of(unit, phase):
    if unit not in RATES:
        raise NotModelled(f"unit {unit} is not modelled")
    return {"unit": unit, "phase": phase}


def measure_of(row, run, baseline):
    """NotModelled where it is none of the prediction's."""
    metric, phase = row["metric"], row["phase"]
    if metric == "status":
        return {"kind": metric}
    if metric == "speed-up":
        return {"kind": metric, "baseline": baseline()}
    if metric == "share" and phase in ("rollout", "training"):
        return {"kind": metric, "parts": ["generate"] if phase == "rollout" else ["train", "log_probs"]}
    if metric not in ("time", "throughput", "MFU"):
        raise NotModelled(f"metric {metric} is not modelled")
    measure = {"kind": metric, "parts": parts_of(phase, run), "phase": phase}
    if metric == "time":
        measure.update(time_of(row["unit"], run))
    if metric == "throughput":
        measure.update(throughput_of(row["unit"], phase))
    return measure


def value_of(row):
    """Lowest and highest: of "100" the same, of "1.8-2.5" its ends, of a status 1 where memory did not do."""
    text = row["value"]
    if row["metric"] == "status" and text:
        return (float(has(text, "OOM")),) * 2
    ends = match(text, r"^\s*([0-9.]+) ?(?:-|–|to) ?([0-9.]+)\s*$")
    low = finite(ends[1] if ends else text)
    if low is None or low <= 0:
        raise NotModelled(f"no one value: '{text}'")
    highs = [finite(high) or 0 for high in (ends[2] if ends else "", row["value_hi"])]
    return low, next((high for high in reversed(highs) if high > low), low)


def may_fit(row, run, fitted):
    """Whether constants may be fitted to a row: it times a whole run or phase, states what was run, and is none of
    those that are kept to be predicted (docs/planner-accuracy.md, "Against published results": back ends that are not
    `fitted`, verl beyond 64 devices, one of two forms of the same measurement)."""
    stated = row["gen_len"] and row["batch"] and not has(row["phase"], "rollout")
    twice = row["unit"] in ("PFLOP/s", "tok/s/GPU") or has(row["unit"], "steps")
    kept = run["backend"] == "verl" and run["devices"] > 64
    return bool(stated and not twice and not kept and row["metric"] in ("time", "throughput")
                and run["backend"] in fitted)
