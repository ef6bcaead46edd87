"""A reward for each digit of an answer that stands in its place."""


def by_digit(prompts, completions, ground_truth, **columns):
    scores = []
    for completion, truth in zip(completions, ground_truth):
        right = [float(said == digit) for said, digit in zip(completion, truth)]
        share = [value / len(truth) for value in right]
        scores.append({"score": sum(share), "steps": [(place + 1, value) for place, value in enumerate(share)]})
    return scores
