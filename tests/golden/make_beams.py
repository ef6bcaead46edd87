"""Writes tests/golden/beams.json: completions that transformers' beam search finds with the tiny model of small/models,
and their scores, for several numbers of beams, length penalties, ways to stop, lengths and end tokens; and
tests/golden/ruled_beams.json: the same beside penalties, biases, stop texts and regular expressions. transformers has
the repetition penalty, biases and least lengths itself; the rest is handed to it as a logits processor, a stopping
criterion and a function of allowed tokens.

Made with transformers 5.23.0 and torch 2.11.0: python tests/golden/make_beams.py, and with the word `ruled` for the
second file alone.
"""
import json
import pathlib
import random
import sys

import regex
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


PIECES = ["a", "b", "ab", "ba", "c"]  # the text of a token: by its id, unless it ends the completion


class Counts(transformers.LogitsProcessor):
    """OpenAI's presence and frequency penalties, of the completion's tokens."""

    def __init__(self, case):
        self.case = case

    def __call__(self, ids, scores):
        for row, tokens in enumerate(ids[:, len(self.case["prompt"]):].tolist()):
            for token in set(tokens):
                scores[row, token] -= (tokens.count(token) * self.case.get("frequency_penalty", 0)
                                       + self.case.get("presence_penalty", 0))
        return scores


def text_of(case, tokens):
    return "".join("" if token in case["eos"] else PIECES[token % len(PIECES)] for token in tokens)


def stopped(case, tokens):
    return any(stop in text_of(case, tokens) for stop in case.get("stop", []))


class StopTexts(transformers.StoppingCriteria):
    def __init__(self, case):
        self.case = case

    def __call__(self, ids, scores, **kwargs):
        return torch.tensor([stopped(self.case, row[len(self.case["prompt"]):]) for row in ids.tolist()])


def allowed_tokens(case, vocabulary):
    def allowed(_, ids):
        tokens = ids.tolist()[len(case["prompt"]):]
        text = text_of(case, tokens)
        ids = [token for token in range(vocabulary) if token not in case["eos"]
               and regex.fullmatch(case["regex"], text + PIECES[token % len(PIECES)], partial=True)]
        return ids + (case["eos"] if not ids or regex.fullmatch(case["regex"], text) else [])
    return allowed


def searched_by_rules(model, case):
    options = {}
    if case.get("repetition_penalty"):
        options["repetition_penalty"] = case["repetition_penalty"]
    if case.get("logit_bias"):
        options["sequence_bias"] = [[[int(token)], bias] for token, bias in case["logit_bias"].items()]
    if case.get("stop"):
        options["stopping_criteria"] = [StopTexts(case)]
    if case.get("regex"):
        options["prefix_allowed_tokens_fn"] = allowed_tokens(case, model.config.vocab_size)
    made = model.generate(torch.tensor([case["prompt"]]), num_beams=case["num_beams"],
                          num_return_sequences=case["num_beams"], do_sample=False,
                          length_penalty=case["length_penalty"], early_stopping=case["early_stopping"],
                          max_new_tokens=case["max_new_tokens"], min_new_tokens=case.get("min_tokens", 0),
                          eos_token_id=case["eos"], pad_token_id=0, return_dict_in_generate=True, output_scores=True,
                          logits_processor=[Counts(case)], **options)
    completions, scores = [], made.sequences_scores.tolist()
    for sequence, score in zip(made.sequences[:, len(case["prompt"]):].tolist(), scores):
        if score < -1e6:  # there was no more to find
            continue
        ends = [i + 1 for i in range(len(sequence)) if sequence[i] in case["eos"] or stopped(case, sequence[:i + 1])]
        completions.append(sequence[:ends[0]] if ends else sequence[:case["max_new_tokens"]])
    return completions, scores[:len(completions)]


def ruled_case(rng, likely, vocabulary, number):
    rules = [{"repetition_penalty": rng.choice([0.8, 1.3, 2.0])},
             {"presence_penalty": rng.choice([-1.0, 0.5, 1.5]), "frequency_penalty": rng.choice([0.0, 0.4, -0.3])},
             {"logit_bias": {str(token): rng.choice([-3.0, 1.5]) for token in rng.sample(range(vocabulary), 3)}},
             {"min_tokens": rng.choice([2, 3])}, {"stop": rng.choice([["aba"], ["cc", "bb"], ["ca"]])}]
    forms = [{"regex": rng.choice(["(ab|c)+", "[ab]{2,7}", "a?b?c?", "(?:abc|b{2,3}a)*c"])}]
    chosen = forms + rng.sample(rules[:3], rng.choice([0, 1, 2])) if number % 3 == 0 else rng.sample(rules, 2)
    case = {"eos": rng.sample(likely, rng.choice([1, 1, 2]))}
    for rule in chosen:
        case |= rule
    if "stop" in case:
        case.pop("min_tokens", None)  # transformers' least lengths say nothing of stop texts
    return case


def write_ruled(model):
    vocabulary = model.config.vocab_size
    rng = random.Random(5)
    cases, tried = [], 0
    while len(cases) < 90:
        tried += 1
        case = {"prompt": [rng.randrange(2, vocabulary) for _ in range(rng.choice([1, 3, 8, 11]))],
                "num_beams": rng.choice([2, 3, 4, 5]), "length_penalty": rng.choice([1.0, 0.0, 2.0, -0.5]),
                "early_stopping": rng.choice(STOPS), "max_new_tokens": rng.choice([3, 6, 12, 20])}
        with torch.no_grad():
            likely = model(torch.tensor([case["prompt"]])).logits[0, -1].topk(8).indices.tolist()
            case |= ruled_case(rng, likely, vocabulary, len(cases))
            case["completions"], case["scores"] = searched_by_rules(model, case)
            free = searched(model, case, case["num_beams"])[0]
        if case["completions"] == free or not case["completions"]:
            continue
        if all(a - b > CLOSE for a, b in zip(case["scores"], case["scores"][1:])):
            cases.append(case)
    (HERE / "ruled_beams.json").write_text("[" + ",\n".join(json.dumps(case) for case in cases) + "]\n")
    by_text = sum(stopped(case, tokens) for case in cases for tokens in case["completions"])
    missing = sum(case["num_beams"] - len(case["completions"]) for case in cases)
    print(tried, "tried,", len(cases), "cases,", by_text, "completions end with a stop text,", missing, "are missing")


def main():
    model = transformers.AutoModelForCausalLM.from_pretrained(HERE / "small/models/tiny", dtype=torch.float32).eval()
    write_ruled(model)
    if sys.argv[1:] == ["ruled"]:
        return
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
