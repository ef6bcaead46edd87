"""Preference pairs from stories that the model itself told: `collimate generate MODEL --prompt "" --n 3000 --json`.

    python3 bench/real/make_pairs.py STORIES.json TRAIN.jsonl HELD_OUT.jsonl [--held-out 500] [--seed 1] [--marked]

A story's opening is the prompt, the rest is chosen; rejected is the same rest with its sentences' words shuffled, or
cut off in the middle, each for half of the stories. Stories that were told twice or are too short are left out. With
--marked each pair gives one answer with a label instead, in turn the chosen and the rejected one.
"""

import argparse
import json
import random
import re

OPENING_WORDS = 8


def shuffled(text, rng):
    """Puts the words in another order, sentence by sentence, so that length and vocabulary say nothing."""
    out = []
    for sentence in re.findall(r"[^.!?]+[.!?\"]*\s*", text):
        words = sentence.split()
        rng.shuffle(words)
        out.append(" ".join(words))
    return " " + " ".join(out)


def cut(text, rng):
    """The story's first 30 to 70 percent, ending within a word or sentence."""
    return text[: int(len(text) * rng.uniform(0.3, 0.7))]


def pair(story, rng, how):
    words = re.findall(r"\S+\s*", story)
    prompt = "".join(words[:OPENING_WORDS]).rstrip()
    chosen = story[len(prompt) :].rstrip()
    return {"prompt": prompt, "chosen": chosen, "rejected": how(chosen, rng), "kind": how.__name__}


def marked(pair, desirable):
    return {"prompt": pair["prompt"], "completion": pair["chosen" if desirable else "rejected"], "label": desirable,
            "kind": pair["kind"]}


def main():
    parser = argparse.ArgumentParser()
    for name in ("stories", "train", "held_out_file"):
        parser.add_argument(name)
    parser.add_argument("--held-out", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--marked", action="store_true")
    call = parser.parse_args()
    rng = random.Random(call.seed)
    with open(call.stories) as file:
        told = [row["completion"].strip() for row in json.load(file)]
    stories = [s for s in dict.fromkeys(told) if len(s.split()) >= 3 * OPENING_WORDS]
    pairs = [pair(s, rng, (shuffled, cut)[i % 2]) for i, s in enumerate(stories)]
    rng.shuffle(pairs)
    for path, rows in ((call.held_out_file, pairs[: call.held_out]), (call.train, pairs[call.held_out :])):
        if call.marked:
            rows = [marked(row, i % 2 == 0) for i, row in enumerate(rows)]
        with open(path, "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        print(f"{len(rows)} {'marked answers' if call.marked else 'pairs'} in {path}")


if __name__ == "__main__":
    main()
