"""Makes the simulated tables of docs/planner-accuracy.md by `collimate plan --json`; needs no model, device or data.

    python3 bench/planner_tables.py [claims] [flattening] [size] [forms] [memory] [seconds]      (default: all of them)

claims: 7B + 7B on 8 A100 and 70B + 70B on 32 beside published tokens a second. flattening: the choice against
flattening, four sizes on four clusters. size: how many devices 300B + 300B needs, and what more buy. forms: the best
interleaving and separation against flattening in the setting of 2312.11819 (LLaMA, 480 tokens drawn). memory: which
models fit on how many devices, and what does not where none does. seconds: of the search, the whole command, where the
machine should be quiet.

Environment: COLLIMATE the program (default: build/release/bin/collimate). Exit code 1 where a claim does not hold.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
COLLIMATE = pathlib.Path(os.environ.get("COLLIMATE", ROOT / "build/release/bin/collimate")).resolve()
WORK = ["--rows", "1024", "--prompt", "512", "--completion", "512", "--updates", "8"]
SPREAD = ["--rows", "1024", "--prompt", "512", "--completion", "mean:900,1,4096"]
# Tokens a second of ChatLearn, OpenRLHF and DeepSpeed-Chat (ChatLearn's chart of 2024), and the largest share of the
# best of them that the plan must reach.
PUBLISHED = {("llama2-7b", "8xA100-80"): (6750, 3111, 2917), ("llama2-70b", "32xA100-80"): (2585, 839, 663)}


def plan(*words):
    """The best plan, or the text of the error where nothing fits."""
    done = subprocess.run([COLLIMATE, "plan", "--json", *words], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout)["plans"][0], ""
    if done.returncode == 2:
        return None, done.stderr.strip()
    sys.exit(f"[bench/planner_tables.py] {' '.join(words)}\n{done.stderr}")


def ppo(model, cluster, *words):
    return plan("--flow", "ppo", "--models", model, "--cluster", cluster, *(words or WORK))


def show(head, rows):
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print()


def where(best):
    parts = best["parts"].replace(" | ", ", ")
    return best["form"] if best["form"] == "flattening" else f"{best['form']}: {parts}"


def claims():
    rows, held = [], True
    for (model, cluster), published in PUBLISHED.items():
        best, _ = ppo(model, cluster)
        rows.append([f"{model} on {cluster}", *published, f"{best['tokens_per_second']:,.0f}", where(best)])
        held = held and best["tokens_per_second"] > max(published)
    show(["claim", "ChatLearn", "OpenRLHF", "DeepSpeed-Chat", "planned (simulated)", "placement"], rows)
    return held


def against_flattening():
    clusters = ["8xA100-80", "32xA100-80", "128xA100-80", "64xH100-80"]
    rows, held = [], True
    for model in ("llama2-7b", "llama2-13b", "codellama-34b", "llama2-70b"):
        cells = [model]
        for cluster in clusters:
            best, why = ppo(model, cluster)
            flat, _ = ppo(model, cluster, *WORK, "--form", "flattening")
            if best is None:
                cells.append("nothing fits")
                continue
            chosen, other = best["period_seconds"], flat["period_seconds"] if flat else float("inf")
            held = held and chosen <= 1.005 * other
            gain = "flattening" if best["form"] == "flattening" else f"/ {other:.1f} ({other / chosen - 1:.0%})"
            cells.append(f"{chosen:.1f} {gain}")
        rows.append(cells)
    show(["seconds: the choice / flattening", *clusters], rows)
    return held


def size():
    rows = []
    for devices in (32, 64, 96, 128, 192, 256, 512, 1024):
        best, why = ppo("dense-300b", f"{devices}xA100-80")
        if best is None:
            rows.append([devices, "does not fit", "", why[:160]])
            continue
        hours = best["period_seconds"] * 100 / 3600 * devices
        rows.append([devices, f"{best['tokens_per_second']:,.0f}", f"{hours:,.0f}", best["form"]])
    show(["300B + 300B on A100-80", "tokens/s", "GPU-hours of 100 iterations", "placement"], rows)
    return True


def forms():
    """LLaMA's sizes, 480 tokens drawn after 256."""
    work = ["--rows", "512", "--prompt", "256", "--completion", "480", "--updates", "1"]
    rows = []
    for model, cluster in (("llama2-7b", "8xA100-80"), ("llama2-7b", "32xA100-80"), ("llama2-13b", "32xA100-80"),
                           ("llama-33b", "64xA100-80"), ("llama-65b", "64xA100-80")):
        seconds = {}
        for form in ("flattening", "interleaving", "separation"):
            best, _ = ppo(model, cluster, *work, "--form", form)
            seconds[form] = best["period_seconds"] if best else None
        flat = seconds["flattening"]
        rows.append([f"{model} on {cluster}", f"{flat:.1f}" if flat else "does not fit",
                     *(f"{took:.1f} ({flat / took:.2f}x)" if flat and took else "does not fit"
                       for took in (seconds["interleaving"], seconds["separation"]))])
    show(["seconds (speed against flattening)", "flattening", "interleaving", "separation"], rows)
    return True


def memory():
    """Actor and critic of one size in the first table; of OPT with a critic of 350M in the second."""
    rows = []
    for model, devices in (("opt-13b", 16), ("opt-30b", 32), ("opt-66b", 32), ("opt-66b", 64), ("opt-175b", 128)):
        best, why = ppo(model, f"{devices}xA100-80")
        rows.append([model, devices, "fits" if best else "does not fit",
                     f"{best['peak_bytes'] / 1e9:.1f} of {best['usable_bytes'] / 1e9:.1f} GB" if best else why[:200]])
    show(["PPO, four of", "A100-80", "", "fullest device"], rows)
    rows, counts = [], (1, 8, 64)
    for model in ("opt-350m", "opt-1.3b", "opt-2.7b", "opt-6.7b", "opt-13b", "opt-30b", "opt-66b", "opt-175b"):
        models = f"policy={model},value=opt-350m,reward=opt-350m"
        work = ["--rows", "512", "--prompt", "256", "--completion", "256"]
        fits = [ppo(models, f"{n}xA100-80", *work)[0] for n in counts]
        rows.append([model, *(f"fits, {best['peak_bytes'] / 1e9:.0f} GB" if best else "does not fit" for best in fits)])
    show(["PPO, OPT with a critic of 350M", *(f"{n} A100-80" for n in counts)], rows)
    return True


def seconds():
    rows, held = [], True
    for cluster, most in (("128xA100-80", 2), ("64xA100-80+64xH100-80", None), ("1024xA100-80", 30),
                          ("512xA100-80+512xH100-80", None)):
        cells = [cluster]
        for staleness in ("0", "1", "4", "16"):
            begin = time.perf_counter()
            ppo("llama2-7b", cluster, *SPREAD, "--staleness", staleness)
            took = time.perf_counter() - begin
            held = held and (staleness != "0" or most is None or took <= most)
            cells.append(f"{took:.1f}")
        rows.append(cells)
    show(["seconds of the command, PPO 7B, log-normal lengths", *(f"staleness {n}" for n in (0, 1, 4, 16))], rows)
    return held


TABLES = {"claims": claims, "flattening": against_flattening, "size": size, "forms": forms, "memory": memory,
          "seconds": seconds}


def main(words):
    unknown = [word for word in words if word not in TABLES]
    if unknown:
        sys.exit(f"[bench/planner_tables.py] expected {', '.join(TABLES)}, got {unknown[0]}")
    failed = [name for name in words or TABLES if not TABLES[name]()]
    if failed:
        sys.exit(f"[bench/planner_tables.py] does not hold: {', '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
