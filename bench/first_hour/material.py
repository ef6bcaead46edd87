"""Writes what the tasks of bench/first_hour/README.md need: python3 material.py MODEL DIR.

DIR gets the data of tasks 1 to 4, and mistakes/NN-name/ with a config, its data and the command to run there.
"""

import json
import os
import random
import sys

NAMES = ("Lily", "Tom", "Anna", "Ben", "Mia", "Sam", "Sue", "Max", "Tim", "Amy")
PLACES = ("park", "garden", "house", "school", "beach", "farm")
THINGS = ("ball", "book", "cake", "toy", "hat", "flower")

GRPO = {
    "recipe": "grpo",
    "data": {"train": "prompts.jsonl"},
    "reward": [{"python": "reward.py:score"}],
    "rollout": {"prompts_per_iteration": 4, "samples_per_prompt": 4, "prompt_tokens": 64, "completion_tokens": 24},
    "train": {"samples_per_update": 16, "learning_rate": 1e-4},
    "run": {"iterations": 4, "seed": 1},
}
SFT = {"recipe": "sft", "data": {"train": "rows.jsonl"}, "train": {"samples_per_update": 8}, "run": {"iterations": 4}}
REWARD = "def score(prompts, completions, **columns):\n    return [float('dog' in c) for c in completions]\n"


def prompt(rng):
    return f"Once upon a time, {rng.choice(NAMES)} went to the {rng.choice(PLACES)} with a {rng.choice(THINGS)}."


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def write(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def with_(config, **changes):
    """A deep copy of `config` with `section__key=value`, or a section's value by its name."""
    made = json.loads(json.dumps(config))
    for name, value in changes.items():
        section, _, key = name.partition("__")
        if key:
            made.setdefault(section, {})[key] = value
        else:
            made[section] = value
    return made


def data(root):
    rng = random.Random(1)
    places = {f"Where is {name}?": f"{name} is in the {rng.choice(PLACES)}." for name in NAMES}
    chats = [{"messages": [{"role": "user", "content": q}, {"role": "assistant", "content": a}]}
             for q, a in places.items() for _ in range(20)]
    rng.shuffle(chats)
    write(f"{root}/chats.jsonl", lines(chats))
    write(f"{root}/prompts.jsonl", lines({"prompt": prompt(rng)} for _ in range(200)))
    happy, sad = " They smiled and were very happy.", " They cried and were very sad."
    write(f"{root}/pairs.jsonl", lines({"prompt": prompt(rng), "chosen": happy, "rejected": sad} for _ in range(300)))


def mistakes(model):
    """name -> (config, {file: text}, command)."""
    rng = random.Random(2)
    prompts = lines({"prompt": prompt(rng)} for _ in range(40))
    rows = lines({"prompt": prompt(rng), "completion": " They had fun."} for _ in range(40))
    pairs = lines({"prompt": prompt(rng), "chosen": " They smiled.", "rejected": " They cried."} for _ in range(40))
    grpo, sft = with_(GRPO, models={"policy": {"path": model}}), with_(SFT, models={"policy": {"path": model}})
    files = {"prompts.jsonl": prompts, "reward.py": REWARD}
    train = "collimate train config.yaml"
    chat = lines({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}
                 for _ in range(16))
    broken = rows.split("\n")
    broken[1] = '{"prompt": "a", "completion" "b"}'
    return {
        "key-of-trl": (with_(grpo, train__per_device_train_batch_size=4), files, train),
        "number-as-text": (with_(grpo, train__learning_rate="1e-5x"), files, train),
        "no-model": (with_(grpo, models={"policy": {"path": model + "-2"}}), files, train),
        "hub-name": (with_(grpo, models={"policy": {"path": "Qwen/Qwen2.5-0.5B-Instruct"}}), files, train),
        "recipe-misspelled": (with_(grpo, recipe="gpro"), files, train),
        "no-data": (with_(grpo, data__train="promts.jsonl"), files, train),
        "broken-line": (sft, {"rows.jsonl": "\n".join(broken)}, train),
        "unknown-columns": (sft, {"rows.jsonl": lines({"frage": "a", "antwort": "b"} for _ in range(16))}, train),
        "long-row": (sft, {"rows.jsonl": rows + lines([{"prompt": "a", "completion": "They ran. " * 600}])}, train),
        "csv": (with_(sft, data__train="rows.csv"), {"rows.csv": "prompt,completion\na,b\n"}, train),
        "no-function": (grpo, {**files, "reward.py": REWARD.replace("score", "scores")}, train),
        "reward-raises": (grpo, {**files, "reward.py": "def score(completions, answer, **columns):\n"
                                 "    return [float(c == a) for c, a in zip(completions, answer)]\n"}, train),
        "reward-too-short": (grpo, {**files, "reward.py":
                             "def score(completions, **columns):\n    return [1.0]\n"}, train),
        "reward-all-equal": (with_(grpo, run__iterations=30), {**files, "reward.py":
                             "def score(completions, **columns):\n    return [0.0 for c in completions]\n"}, train),
        "one-sample": (with_(grpo, rollout__samples_per_prompt=1, train__samples_per_update=4), files, train),
        "not-divisible": (with_(grpo, train__samples_per_update=12), files, train),
        "no-template": (sft, {"rows.jsonl": chat}, train),
        "pairs-for-sft": (sft, {"rows.jsonl": pairs}, train),
        "other-config": (sft, {"rows.jsonl": rows}, f"{train} && {train} --set train.learning_rate=1e-3"),
        "rate-too-high": (with_(sft, train__learning_rate=1.0, run__iterations=60), {"rows.jsonl": rows}, train),
    }


def main(model, root):
    data(root)
    for number, (name, (config, files, command)) in enumerate(mistakes(os.path.abspath(model)).items(), 1):
        folder = f"{root}/mistakes/{number:02}-{name}"
        write(f"{folder}/config.yaml", json.dumps(config, indent=1) + "\n")
        write(f"{folder}/command", command + "\n")
        for file, text in files.items():
            write(f"{folder}/{file}", text)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: material.py MODEL DIR")
    main(*sys.argv[1:])
