#!/usr/bin/env python3
"""Published results against the planner's cost model, row by row: what `collimate bench planner` runs.

  bench/published/report.py --results FILE.csv [--program DIRECTORY/bench_published] [--json] [--held-out] [--fit]
                            [--fit-rows] [--fit-backend NAME] [--set CONSTANT=VALUE] [--device KIND.KEY=NUMBER]
"""
import argparse
import csv
import json
import math
import pathlib
import statistics
import subprocess
import sys

import measures
import runs
from rows import read_rows, refuse
from words import NotModelled, finite

HERE = pathlib.Path(__file__).resolve().parent
FEATURES = ("devices", "parameters", "completion", "rows")
TYPED = ("run", "measure", "published", "paper", "size", "may_fit")  # what the program reads of a row
SHOWN = ("id", "paper", "system", "metric", "unit")


def ask(options, **question):
    """Gives what the program answers."""
    question = {"sets": options.set, "devices": options.device, **question}
    if not pathlib.Path(options.program).exists():
        refuse("bench planner", options.program, "no such file; try ninja -C build/release bench_published")
    done = subprocess.run([options.program], input=json.dumps(question), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr, end="", file=sys.stderr)
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def known_of(options, rows):
    models = {row[role] for row in rows for role in ("actor", "critic", "ref", "reward")}
    models |= {f"opt-{row['actor']}b" for row in rows}
    return ask(options, texts={"models": {text: runs.model_names(text) for text in models},
                               "gpus": sorted({name for row in rows for name in runs.gpu_names(row["gpu_type"])})})


def baseline_of(row, run, known):
    """Gives the same run by the row's baseline system, in that system's own set-up."""
    try:
        other = runs.run_of({**row, "placement": "", "parallelism": ""}, known, row["baseline"])
    except NotModelled as reason:
        raise NotModelled(f"baseline: {reason}") from None
    if other["backend"] == run["backend"] and not row["placement"]:
        raise NotModelled("baseline differs in nothing that the row says")
    return other


def typed(row, known):
    """The row in the terms of the cost model, or why there is none."""
    made = {**{name: row[name] for name in SHOWN}, "size": row["actor"],
            "measured": f"{row['metric']} {row['value']} {row['unit']}"}
    try:
        if row["fault"]:
            raise NotModelled(row["fault"])
        made["published"], made["published_high"] = measures.value_of(row)
        run = made["run"] = runs.run_of(row, known, row["system"])
        made["measure"] = measures.measure_of(row, run, lambda: baseline_of(row, run, known))
        made["fits"] = measures.may_fit(row, run, known["fitted"])
        made["may_fit"] = made["fits"] and finite(row["value"]) is not None
    except NotModelled as reason:
        made["reason"] = str(reason)
    return made


def read_fitted():
    with open(HERE / "fitted_rows.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [{**row, **{name: float(row[name]) for name in FEATURES}} for row in rows]


def features(row, of):
    """Gives what the nearest fitted row is found by. `of`: of the run as it is read, or with the lengths of --set."""
    run = row["run"]
    return {"id": row["id"], "measured": row["measured"], "backend": run["backend"], "gpu": run["gpu"]["kind"],
            "devices": run["devices"], "rows": run["rows"], "sharing": run["sharing"], **row[of]}


def distance(a, b):
    """How alike two runs are: sizes by their logarithms, software and GPU above all."""
    apart = (a["backend"] != b["backend"]) * 100 + (a["gpu"] != b["gpu"]) * 10
    for name in FEATURES:
        apart += abs(math.log(a[name] / b[name]))
    return apart + (a["sharing"] != b["sharing"])


def is_same(a, b):
    """Pairs rows of the same id and measurement, and the same run by the table's printed numbers."""
    return (all(a[name] == b[name] for name in ("id", "measured", "backend", "gpu", "devices", "sharing"))
            and all(abs(a[name] - b[name]) <= 1e-3 * max(a[name], b[name])
                    for name in ("parameters", "completion", "rows")))


def error_of(row, low, high, predicted):
    """Predicted over published less 1; 0 inside a range."""
    if row["metric"] == "status":
        return float(predicted != low)
    return predicted / high - 1 if predicted > high else predicted / low - 1 if predicted < low else 0.0


def add_result(row, found, fitted):
    row.update(found)
    if "reason" in row:
        return
    row["error"] = error_of(row, row["published"], row["published_high"], row["predicted"])
    here = features(row, "run_features")
    row["fitted"] = any(is_same(features(row, "read_features"), other) for other in fitted)
    row["nearest_fitted"] = row["id"] if row["fitted"] else min(fitted, key=lambda other: distance(here, other))["id"]


def ranks(values):
    order = sorted(values)
    return [order.index(value) + (order.count(value) - 1) / 2 for value in values]


def rank_correlation(a, b):
    x, y, mean = ranks(a), ranks(b), (len(a) - 1) / 2
    both = sum((p - mean) * (q - mean) for p, q in zip(x, y))
    spread = sum((p - mean) ** 2 for p in x) * sum((q - mean) ** 2 for q in y)
    return both / math.sqrt(spread) if spread > 0 else 0


def pooled_rank(rows):
    """Over units of at least three rows, by rows: times of different units have no order."""
    total = count = 0
    for unit in sorted({row["unit"] for row in rows}):
        own = [row for row in rows if row["unit"] == unit]
        if len(own) >= 3:
            total += len(own) * rank_correlation([r["published"] for r in own], [r["predicted"] for r in own])
            count += len(own)
    return total / count if count else 0


def median(values):
    return statistics.median(values) if values else 0.0


def summary(paper, rows):
    predicted = [row for row in rows if "reason" not in row]
    statuses = [row for row in predicted if row["metric"] == "status"]
    others = [row for row in predicted if row["metric"] != "status"]
    return {"source": paper, "rows": len(rows), "predicted": len(predicted),
            "fitted": sum(row["fitted"] for row in others),
            "median_error": median([abs(row["error"]) for row in others]),
            "median_error_not_fitted": median([abs(row["error"]) for row in others if not row["fitted"]]),
            "rank_correlation": float(pooled_rank([row for row in others if row["metric"] == "time"])),
            "status_rows": len(statuses), "status_right": sum(row["error"] == 0 for row in statuses)}


def summaries(rows):
    """By paper in order of first appearance; the last is of all rows."""
    papers = list(dict.fromkeys(row["paper"] for row in rows))
    return [*(summary(paper, [row for row in rows if row["paper"] == paper]) for paper in papers), summary("all", rows)]


def row_text(row):
    low, high = row["published"], row["published_high"]
    published = f"{low:.4g}-{high:.4g}" if high > low else f"{low:.4g}"
    return (f"{row['id']:>5}  {row['paper']:<22.22}  {row['system']:<26.26}  {row['metric']:<10.10} "
            f"{row['unit']:<12.12} {published:>13} {row['predicted']:>10.4g} {100 * row['error']:>+8.1f} %  "
            f"{row['nearest_fitted']:>6}{' fitted' if row['fitted'] else ''}")


def summary_text(s):
    text = f"{s['source']:<44.44} {s['rows']:>5} {s['predicted']:>10} {s['fitted']:>7}  "
    if s["predicted"] > s["status_rows"]:
        text += f"{100 * s['median_error']:>7.1f} % "
    if s["predicted"] > s["fitted"] + s["status_rows"]:
        text += f"{100 * s['median_error_not_fitted']:>7.1f} % not fitted "
    if s["rank_correlation"]:
        text += f" rank {s['rank_correlation']:.2f}"
    if s["status_rows"]:
        text += f" status {s['status_right']} of {s['status_rows']} right"
    return text


def reason_lines(rows):
    reasons = {}
    for row in rows:
        if "reason" in row:
            reasons.setdefault(row["reason"], []).append(row["id"])
    # Reasons are in the order of their bytes.
    listed = sorted(reasons.items(), key=lambda item: item[0].encode())
    return (["", "not modelled, not counted"] if reasons else []) + [f"  {reason} (rows {' '.join(ids)})"
                                                                     for reason, ids in listed]


def coverage(rows):
    timed = [row for row in rows if row["metric"] in ("time", "throughput")]
    predicted = sum("reason" not in row for row in timed)
    return (f"{predicted} of {len(timed)} time and throughput rows predicted "
            f"({100 * predicted / max(len(timed), 1):.0f} %)")


def report_text(rows, answer):
    lines = [f"{'id':>5}  {'paper':<22}  {'system':<26}  {'metric':<10} {'unit':<12} {'published':>13} "
             f"{'predicted':>10} {'error':>10}  nearest fitted row"]
    lines += [row_text(row) for row in rows if "reason" not in row] + reason_lines(rows)
    lines += ["", coverage(rows), "", f"{'source':<44} {'rows':>5} {'predicted':>10} {'fitted':>7}  {'median':>9}"]
    lines += [summary_text(source) for source in summaries(rows)]
    if answer.get("held_out"):
        lines += ["", "left out of the fit                            rows    median error"]
    for left in answer.get("held_out", []):
        lines.append(f"  {left['backend']:<20} {left['left_out']:<5} {left['name']:<26.26} {left['rows']:>3} "
                     f"{100 * left['median_error']:>8.1f} %")
    if answer.get("fits"):
        lines += ["", "fitted to all rows that may be (plan/inputs/backends.cpp)"]
    for fit in answer.get("fits", []):
        lines += [f"    // {fit['rows']} rows, mean |log error| {fit['mean_log_error']:.3f}",
                  fit["source"].rstrip("\n")]
    return "\n".join(lines) + "\n"


def fitted_text(rows, fitted):
    """The rows of a fit as fitted_rows.csv has them."""
    lines = ["", "the rows that may be fitted (bench/published/fitted_rows.csv)"]
    for row in (features(rows[at], "read_features") for at in fitted):
        lines.append(",".join([row["id"], row["measured"], row["backend"], row["gpu"], str(row["devices"]),
                               f"{row['parameters']:.4g}", f"{row['completion']:.5g}", f"{row['rows']:g}",
                               row["sharing"]]))
    return "\n".join(lines) + "\n"


def report_json(rows, answer):
    names = (*SHOWN, "published", "published_high", "predicted", "error", "may_fit", "fitted", "nearest_fitted")
    modelled = [{**row, "may_fit": row["fits"]} for row in rows if "reason" not in row]
    document = {"rows": [{name: row[name] for name in names} for row in modelled],
                "not_modelled": [{name: row[name] for name in ("id", "paper", "metric", "reason")} for row in rows
                                 if "reason" in row],
                "sources": summaries(rows), "held_out": answer.get("held_out", [])}
    if "fits" in answer:
        document["fits"] = [{**{name: fit[name] for name in ("backend", "rows", "mean_log_error")},
                             "values": dict(fit["values"])} for fit in answer["fits"]]
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", required=True)
    parser.add_argument("--program", default=HERE.parents[1] / "build/release/bin/bench_published")
    for name in ("--json", "--held-out", "--fit", "--fit-rows"):
        parser.add_argument(name, action="store_true")
    for name in ("--set", "--device", "--fit-backend"):
        parser.add_argument(name, action="extend", nargs="+", default=[])
    return parser.parse_args()


def main():
    options = parse_options()
    rows = read_rows(options.results)
    known = known_of(options, rows)
    made = [typed(row, known) for row in rows]
    asked = [row for row in made if "reason" not in row]
    fits = options.fit or bool(options.fit_backend)
    answer = ask(options, rows=[{name: row[name] for name in TYPED} for row in asked],
                 held_out=options.held_out, fit=fits, fit_backends=options.fit_backend,
                 samples=fits or options.held_out or options.fit_rows)
    fitted = read_fitted()
    for row, found in zip(asked, answer["results"]):
        add_result(row, found, fitted)
    if options.json:
        sys.stdout.write(report_json(made, answer))
        return
    sys.stdout.write(report_text(made, answer))
    if options.fit or options.fit_rows:
        sys.stdout.write(fitted_text(asked, answer["fitted"]))


if __name__ == "__main__":
    main()
