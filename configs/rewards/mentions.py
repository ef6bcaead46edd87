"""A reward for short stories: half for mentioning the prompt's word again, half for ending properly."""

import re

SENTENCE_END = re.compile(r"[.!?][\"']?\s*$")


def score(prompts, completions, word, finished, **columns):
    """One number from 0 to 1 for each completion. `finished` is false for a story that was cut off."""
    rewards = []
    for completion, one_word, ended in zip(completions, word, finished):
        mentions = re.search(rf"\b{re.escape(one_word)}s?\b", completion, re.IGNORECASE) is not None
        ends = ended and SENTENCE_END.search(completion) is not None
        rewards.append(0.5 * mentions + 0.5 * ends)
    return rewards
