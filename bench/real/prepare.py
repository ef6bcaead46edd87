"""Writes the inputs of the runs on real models below OUT (default: runs/real/data).

arith_held_out.jsonl      test prompts of verl-arith-llama-random that are not among its training prompts
stories/                  stories260k-llama, ending a story where the model does: at <s>, not at </s>, unlearned
story_prompts.jsonl       openings of stories with a word to mention; story_prompts_held_out.jsonl has other words
instructions.jsonl        instructions with answers; of the last 100 instructions_held_out.jsonl has those that are new

    python3 bench/real/prepare.py [OUT]
"""

import argparse
import itertools
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("COLLIMATE_SHARED", ROOT.parent / "shared"))
COLLIMATE = os.environ.get("COLLIMATE", str(ROOT / "build/release/bin/collimate"))

# Many words to train on, so that mentioning is learned and not the words.
WORDS = (
    "ball dog cat bird tree flower fish car box hat doll boat cake bear apple book frog cup bike kite door duck toy "
    "truck shoe bed bug house horse rock stick train leaf star cookie rabbit sock pig cow goat mouse ant bee fox owl "
    "hen sheep turtle puppy kitten wagon drum bell bag basket bowl spoon fork plate bread egg carrot banana orange "
    "lemon cherry nut seed pie candy sandwich soup coat dress shirt button ring necklace crown mask pen pencil brush "
    "picture letter map key lock lamp candle clock phone chair table bench blanket pillow towel soap bucket shovel "
    "rope ladder hammer nail wheel rocket plane robot bus tractor castle tower bridge tent swing slide sled bubble "
    "cloud moon rainbow shell stone feather nest pond"
).split()
HELD_OUT_WORDS = "bunny balloon pumpkin lion crayon monkey butterfly mirror".split()
OPENINGS = (  # near a story's end, so that it can end within a short completion
    "Lily lost her {} in the park. Tom found it and gave it back to her. Lily was very happy. From that day on,",
    "Sue wanted a {}. At the end of the day her mom gave it to her. Sue learned that",
    "Tim was sad. He had no {}. Ben shared with him and they played all day. From that day on, Tim and Ben",
    "One day, a {} was lost. Everyone helped, and soon they were all happy. The moral of the story is",
)


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def prompts_of(model, data):
    """The prompts of a file as the model's tokenizer renders them: what two files have in common shows in this form."""
    command = [COLLIMATE, "generate", str(model), "--data", str(data), "--max-tokens", "1", "--json"]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return [row["prompt"] for row in json.loads(out)]


def messages(prompt):
    """A row of prompts that the model's tokenizer renders as `prompt`."""
    return {"prompt": [{"role": "user", "content": prompt.removesuffix("S")}]}


def arith(out):
    model = SHARED / "data/models/verl-arith-llama-random"
    train = set(prompts_of(model, model / "train.parquet"))
    test = [p for p in prompts_of(model, model / "test.parquet") if p not in train]
    write_lines(out / "arith_held_out.jsonl", [messages(p) for p in test])
    print(f"{len(test)} held-out prompts of digit completion")


def stories(out):
    source, target = SHARED / "data/models/stories260k-llama/hf-llama", out / "stories"
    target.mkdir(parents=True, exist_ok=True)
    for file in source.iterdir():
        link = target / file.name
        link.unlink(missing_ok=True)
        if file.name == "config.json":
            link.write_text(json.dumps(json.loads(file.read_text()) | {"eos_token_id": 1}, indent=1))
        elif file.name == "tokenizer_config.json":
            link.write_text(json.dumps(json.loads(file.read_text()) | {"eos_token": "<s>"}, indent=1))
        else:
            link.symlink_to(file.resolve())


def story_prompts(out):
    for name, words in (("story_prompts", WORDS), ("story_prompts_held_out", HELD_OUT_WORDS)):
        pairs = itertools.product(OPENINGS, words)
        write_lines(out / f"{name}.jsonl", [{"prompt": o.format(w), "word": w} for o, w in pairs])


def instructions(out):
    file = SHARED / "data/preferences/rasbt-instruction/instruction-data.json"
    rows = json.loads(file.read_text())
    train, held_out = rows[:-100], rows[-100:]
    known = {(row["instruction"], row["input"]) for row in train}
    write_lines(out / "instructions.jsonl", train)
    write_lines(
        out / "instructions_held_out.jsonl",
        [row for row in held_out if (row["instruction"], row["input"]) not in known],
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT", nargs="?", type=pathlib.Path, default=ROOT / "runs/real/data")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    arith(out)
    stories(out)
    story_prompts(out)
    instructions(out)


if __name__ == "__main__":
    main()
