"""The share of characters with an odd code point: as cheap as the reward of the peers' harness."""


def score(prompts, completions, **columns):
    return [sum(ord(c) % 2 for c in completion) / max(1, len(completion)) for completion in completions]
