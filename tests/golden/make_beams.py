"""Writes tests/golden/beams.json: completions that transformers' beam search finds with the tiny model of small/models,
and their scores, for several numbers of beams, length penalties, ways to stop, lengths and end tokens.

Made with transformers 5.23.0 and torch 2.11.0: python tests/golden/make_beams.py
"""
import json
import pathlib
import random

import torch
import transformers

STOPS = [False, True, "never"]
HERE = pathlib.Path(__file__).parent
CLOSE = 1e-4  # scores that differ by less may change places elsewhere: such cases are left out


def searched(model, case, beams):
    made = model.generate(torch.tensor([case["prompt"]]), num_beams=beams, num_return_sequences=beams, do_sample=False,
                          length_penalty=case["length_penalty"], early_stopping=case["early_stopping"],
                          max_new_tokens=case["max_new_tokens"], min_new_tokens=0, eos_token_id=case["eos"],
                          pad_token_id=0, return_dict_in_generate=True, output_scores=True)
    completions = []
    for sequence in made.sequences[:, len(case["prompt"]):].tolist():
        ends = [i for i, token in enumerate(sequence) if token in case["eos"]]
        completions.append(sequence[:ends[0] + 1] if ends else sequence[:case["max_new_tokens"]])
    return completions, made.sequences_scores.tolist()


def main():
    model = transformers.AutoModelForCausalLM.from_pretrained(HERE / "small/models/tiny", dtype=torch.float32).eval()
    vocabulary, positions = model.config.vocab_size, model.config.max_position_embeddings
    rng = random.Random(11)
    cases, tried = [], 0
    while len(cases) < 80:
        tried += 1
        matters = len(cases) % 2 == 1  # how a search stops has to matter for every second case
        case = {"prompt": [rng.randrange(2, vocabulary) for _ in range(rng.choice([1, 3, 8, 11, positions - 20]))],
                "num_beams": 2 if matters else rng.choice([2, 3, 4, 5]),
                "length_penalty": rng.choice([1.0, 0.0, 2.0, -0.5, 0.7]), "early_stopping": rng.choice(STOPS),
                "max_new_tokens": 20 if matters else rng.choice([1, 2, 6, 12, 20]), "eos": []}
        with torch.no_grad():
            likely = model(torch.tensor([case["prompt"]])).logits[0, -1].topk(4 if matters else 8).indices.tolist()
            case["eos"] = rng.sample(likely, rng.choice([1, 1, 2]))
            found = [searched(model, case | {"early_stopping": stop}, case["num_beams"])
                     for stop in (STOPS if matters else [case["early_stopping"]])]
        if matters and all(other[0] == found[0][0] for other in found):
            continue
        case["completions"], case["scores"] = found[STOPS.index(case["early_stopping"]) if matters else 0]
        if all(a - b > CLOSE for a, b in zip(case["scores"], case["scores"][1:])):
            cases.append(case)
    print(tried, "tried")
    (HERE / "beams.json").write_text("[" + ",\n".join(json.dumps(case) for case in cases) + "]\n")
    ended = sum(len(c) < case["max_new_tokens"] for case in cases for c in case["completions"])
    print(len(cases), "cases,", sum(len(case["completions"]) for case in cases), "completions,", ended,
          "shorter than allowed")


if __name__ == "__main__":
    main()
