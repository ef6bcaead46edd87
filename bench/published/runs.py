"""A row of a results file as a run in the terms of the cost model. Everything is read from what the row says of the
run, nothing from which row or paper it is."""
import math

from sharing import layouts_in, read_sharing, require_whole_replicas, share_in_groups
from words import (MOST_DEVICES, NotModelled, finite, has, has_word, leading, match, number, require_known_words,
                   rounded, whole)

USUAL_LORA_RANK = 64
CALL_TOKENS = 16384  # of DeepSpeed-Chat's calls on one device: 8 rows of 2,048 in OpenRLHF's tuned runs of it
# The software that a system is, by the word that its name begins with; the first that fits is taken.
SYSTEMS = {"deepspeed-chat": "deepspeed-chat", "deepspeedchat": "deepspeed-chat", "deepspeed chat": "deepspeed-chat",
           "openrlhf": "openrlhf", "realhf": "real", "chatlearn 0": "chatlearn-megatron", "chatlearn": "chatlearn-vllm",
           "nemo-rl": "nemo-rl", "verl": "verl", "hybridflow": "hybridflow", "areal": "areal"}
# A row that gives none gets these: mathematics prompts are short, PPO papers of 2023-24 pad to 1024.
SHORT_PROMPT, USUAL_LENGTH, USUAL_CAP, USUAL_ROWS = 200, 1024, 8192, 1024
GROUP, DAPO_PROMPTS, DAPO_UPDATES = 16, 512, 16  # DAPO's paper (2503.14476)
PPO_UPDATES = 8  # of 2409.19256 and of OpenRLHF's defaults (1,024 rows in batches of 128)
# DeepSpeed-Chat's epoch of "131.9k pairs" has 135.3M tokens of rows of 512: 264,292 rows.
ROWS_OF_A_PAIR = 2
MOST_TOKENS, MOST_ROWS = 1e7, 1e8


def backend_of(system):
    """The back end whose software a system is; "" for one that is not modelled."""
    name = system[5:] if has(system[:5], "sync.") or has(system[:5], "sync ") else system
    if name.startswith("ReaL") and has_word(name, "real"):  # the spelling tells ReaL from the word
        return "real"
    return next((backend for word, backend in SYSTEMS.items() if has_word(name[:len(word) + 1], word)), "")


def model_names(text):
    """`7`, `30B-A3B (Qwen3)`, `DeepSeek V3`, `7 (Qwen2.5-Math-7B)`: names that the model may have, and its size."""
    parts = match(text, r"^\s*([^(]*?)\s*\(([^)\s]*)[^)]*\)\s*$")
    names = [parts[2], parts[2] + parts[1], parts[1] + parts[2], parts[1]] if parts else [text]
    size = match(text, r"^\s*([0-9.]+)\s*[bB]?\s*(\(.*)?$")
    return {"names": names, "billions": leading(size[1]) if size else 0}


def gpu_names(text):
    """"unstated (A100/A800/H800-80GB class)" is the first of those; of a family without its model H100 is sold most."""
    inside = match(text, r"\(([A-Z]+[0-9]+)")
    return [text.split(" ")[0].split("(")[0].split(",")[0], *([inside[1]] if inside else []),
            *(["H100"] if has_word(text, "Hopper") else [])]


def gpu_of(text, known):
    """"8/node, 800 Gb RDMA", "8x200Gb RoCE", "200 Gbps": bits a second of a node's cards. A capital B is memory."""
    kind = next((known["gpus"][name] for name in gpu_names(text) if known["gpus"][name]), None)
    if not kind:
        raise NotModelled(f"GPU type '{text}' is not in the table")
    in_node = match(text, r"\b([0-9]+) ?/ ?node")
    speed = match(text, r"(?:\b([0-9]+) ?(?:x|×) ?|\b)([0-9]+(?:\.[0-9]+)?) ?G(?:b|bps|bit/s)\b", flags=0)
    bits = (float(speed[1]) if speed[1] else 1) * float(speed[2]) * 1e9 if speed else 0
    return {"kind": kind, "per_node": whole(in_node[1]) if in_node else 0, "network_bits": bits}


def devices_of(text):
    product = match(text, r"^\s*([0-9]+) ?x ?([0-9]+)\s*$")
    count = whole(product[1]) * whole(product[2]) if product else finite(text) or 0
    if not 1 <= count <= MOST_DEVICES or count != math.floor(count):
        raise NotModelled(f"no one number of devices: {text}" if text else "number of devices not given")
    return int(count)


def models_of(row, known):
    actor = known["models"][row["actor"]]
    if not actor:
        raise NotModelled(f"no one model: '{row['actor']}'" if row["actor"] else "model not given")
    models = {"actor": actor}
    for role in ("critic", "ref", "reward"):
        if model := actor if row[role] == "same" else known["models"][row[role]]:
            models[role] = model
    # A size of several families, beside a model of OPT's: OPT's.
    if (finite(row["actor"]) or 0) > 0 and models.get("critic", "").startswith("opt-"):
        opt = known["models"][f"opt-{row['actor']}b"]
        models = {role: opt if opt and model == actor else model for role, model in models.items()}
    # "GPT L48/h7168" beside the size: heads of 128, an MLP four times as wide.
    if cut := match(row["note"], r"GPT L([0-9]+)/h([0-9]+)"):
        layers, hidden = whole(cut[1]), whole(cut[2])
        if layers < 1 or hidden < 128:
            raise NotModelled(f"no model: '{row['note']}'")
        models = {role: {"layers": layers, "hidden": hidden} for role in models}
    return models


def read_algorithm(run, algo):
    """Gives what an algorithm adds to or leaves out of PPO's calls (2409.19256, figure 1)."""
    if has_word(algo, "ReMax"):  # a second, greedy completion of each prompt as the baseline, and no critic
        run.update(generations=2, rewards=2)
    if has_word(algo, "Safe-RLHF") or has_word(algo, "SafeRLHF"):  # a cost model, and a pretraining loss
        run.update(rewards=2, train_sets=2)
    if any(has_word(algo, name) for name in ("ReMax", "GRPO", "RLOO")):
        run["models"].pop("critic", None)


def in_groups(row):
    return has(row["algo"], "GRPO") or has(row["algo"], "DAPO")


def stated_rows(row, tokens_per_row):
    """Rows of an iteration that the text states."""
    text = row["batch"]
    product = match(text, r"([0-9]+) ?(?:prompts )?x ?([0-9]+)")
    if product and not has(text, "GBS"):
        return float(product[1]) * float(product[2])
    if (prompts := number(text, r"^([0-9]+) prompts", 0)) > 0:
        return prompts * (GROUP if in_groups(row) else 1)
    for pattern in (r"<=([0-9]+) pairs", r"sample_per_episode ([0-9]+)", r"^GBS ([0-9]+)",
                    r"^([0-9]+)(?: requests|$)"):
        if match(text, pattern):
            return number(text, pattern, 0)
    if (millions := number(text, r"([0-9.]+)M tok", 0)) > 0:
        return rounded(millions * 1048576 / tokens_per_row)
    return DAPO_PROMPTS * GROUP if has(row["algo"], "DAPO") else USUAL_ROWS


def updates_of(row, run):
    text, rows = row["batch"], run["rows"]
    count = DAPO_UPDATES if not text and has(row["algo"], "DAPO") else 1
    if (size := number(text, r"train GBS ([0-9]+)", 0)) > 0:
        count = rows / size
    elif (stated := number(text, r"([0-9]+) minibatches", 0)) > 0:
        count = stated
    elif (mini := number(text, r"mini ([0-9]+)", 0)) > 0:
        count = number(text, r"([0-9]+) prompts", rows) / mini
    elif "critic" in run["models"] and not has(text, "/step"):
        count = min(PPO_UPDATES, rows)
    return int(min(max(rounded(count), 1), 1e6))


def completions_of(row, prompt):
    """One length, or the mean (0: not given) and the cap of those that are spread."""
    text = row["gen_len"]
    cap = number(text, r"max (?:total )?([0-9]+)", number(text, r"^([0-9]+)$", 0))
    if has(text, "k context"):
        cap = 1024 * number(text, r"([0-9]+)k context", 0) - prompt
    mean = number(text, r"(?:avg|mean) ([0-9]+)", 0)
    if has(text, "total"):
        mean, cap = (mean - prompt if mean > 0 else mean), (cap - prompt if cap > 0 else cap)
    if ends := match(text, r"^([0-9]+) ?- ?([0-9]+)$"):
        return {"completion": max(1.0, (float(ends[1]) + float(ends[2])) / 2)}
    if mean > 0:
        return {"mean_completion": mean, "completion_cap": cap if cap > mean else 4 * mean}
    if cap > 0 and (in_groups(row) or has(text, "max") or has(text, "context")):
        return {"completion_cap": cap}
    if (fixed := number(text, r"^([0-9]+)", 0)) > 0:
        return {"completion": fixed}
    return {"completion_cap": USUAL_CAP} if in_groups(row) else {}


def read_load(run, row, known):
    prompt = number(row["prompt_len"], r"^([0-9]+)",
                    SHORT_PROMPT if in_groups(row) or "critic" not in run["models"] else USUAL_LENGTH)
    if has(row["gen_len"], "avg"):
        prompt = min(prompt, 0.3 * number(row["gen_len"], r"avg ([0-9]+)", 4 * prompt))
    run.update({"completion": USUAL_LENGTH, "mean_completion": 0, "completion_cap": 0}, prompt=prompt)
    run.update(completions_of(row, prompt))
    run["short_answers"] = has(row["actor"], "Qwen2") or has(row["actor"], "llama")  # no reasoning models
    if max(prompt, run["completion_cap"], run["completion"]) > MOST_TOKENS:
        raise NotModelled(f"lengths '{row['prompt_len']}' and '{row['gen_len']}'")
    run["rows"] = stated_rows(row, prompt + mean_completion(run, known))
    if not 1 <= run["rows"] <= MOST_ROWS:
        raise NotModelled(f"rows of an iteration: '{row['batch']}'")
    run["updates"] = updates_of(row, run)
    run["run_rows"] = (1000 * number(row["batch"], r"([0-9.]+)k (?:samples|prompts|rows)\b", 0)
                       or ROWS_OF_A_PAIR * 1000 * number(row["batch"], r"([0-9.]+)k pairs\b", 0)
                       or number(row["batch"], r"\b([0-9]+) samples\b", 0))


def mean_completion(run, known):
    """Does what with_lengths of run.cpp does."""
    if run["completion_cap"] <= 0:
        return run["completion"]
    short = min(known["mean_tokens"][run["backend"]], run["completion_cap"] / 2)
    return run["mean_completion"] or (short if run["short_answers"]
                                      else known["reasoned_share"] * run["completion_cap"])


def read_techniques(run, row):
    text = row["parallelism"] + " " + row["placement"]
    deepspeed = run["backend"] == "deepspeed-chat"
    run["micro_batch"] = whole((match(text, r"\bMBS([0-9]+)") or "00")[1])
    # DeepSpeed-Chat's fused kernels were made for OPT and GPT; LLaMA's gated layers run in many launches. It generates,
    # scores and trains in calls of one size.
    run.update(unfused=deepspeed, call_rows=run["micro_batch"] if deepspeed else 0,
               call_tokens=CALL_TOKENS if deepspeed and not run["micro_batch"] else 0)
    # OpenRLHF's own runs and examples all keep Adam on the host.
    run.update(recompute=has(text, "recompute"), offload=has(text, "offload") or run["backend"] == "openrlhf",
               zero3=has(text, "zero-3"), searched=has(row["placement"], "searched"))
    if tp := whole((match(row["placement"], r"TP([0-9]+) intra") or "00")[1]):
        run["layouts"][""] = {"tp": tp}


def read_software(run, row):
    """Gives what holds for a system wherever it stands in the row."""
    system, backend = row["system"], run["backend"]
    run["fp8"] = has(system, "fp8")
    run["sharded_training"] = backend in ("deepspeed-chat", "openrlhf") or (backend == "verl"
                                                                           and not has_word(system, "Megatron"))
    run["lora_rank"] = (int(number(row["note"], r"LoRA dim ([0-9]{1,6})", USUAL_LORA_RANK)) if has(row["algo"], "lora")
                        else 0)
    # PPO with a critic keeps the log-probs of its generation; fully asynchronous runs keep each row's own, which are of
    # weights that are gone.
    asynchronous = any(has(system + row["placement"], word) for word in ("fully async", "fully_async"))
    run["recomputes_log_probs"] = "critic" not in run["models"] and not has(row["phase"], "step 3") and not asynchronous


def run_of(row, known, system):
    """The run of a system in its own set-up; NotModelled where there is none."""
    run = {"backend": backend_of(system), "generations": 1, "rewards": 1, "train_sets": 1, "sharing": "colocated",
           "train_devices": 0, "generate_devices": 0, "places": {}, "staleness": 0, "continuous": False}
    if not run["backend"]:
        raise NotModelled(f"software of '{system}' is not modelled")
    run["gpu"] = gpu_of(row["gpu_type"], known)
    run["devices"] = devices_of(row["n_gpus"])
    run["models"] = models_of(row, known)
    read_algorithm(run, row["algo"])
    read_load(run, row, known)
    row = {**row, "system": system}
    read_software(run, row)
    run["layouts"] = layouts_in(row["parallelism"])
    read_sharing(run, row)
    read_techniques(run, row)
    if run["backend"] == "openrlhf" and run["sharing"] == "colocated":
        share_in_groups(run)
    require_known_words(row)
    require_whole_replicas(run, row["parallelism"])
    return run
