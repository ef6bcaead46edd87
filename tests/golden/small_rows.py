"""Rows of token ids for small goldens: drawn, padded as TRL's batches have them, scored by a model."""

import numpy as np

import small_model as sm

PAD = 0


def softplus(x):
    return np.logaddexp(0.0, x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def drawer(rng):
    """A function of a count: that many ids, none of them special."""
    return lambda count: [int(t) for t in rng.integers(3, 16, count)]


def padded(rows, fill, width=None, left=False):
    width = width or max(map(len, rows))
    return [[fill] * (width - len(r)) + list(r) if left else list(r) + [fill] * (width - len(r)) for r in rows]


def completion_sum(p, row, prompt, model=sm):
    return model.log_probs(p, row)[0][prompt - 1:].sum()


def pairs(tokens):
    """Rows (ids, prompt's length), chosen ones first, and their batch."""
    chosen = [([1] + tokens(5), 3), ([1] + tokens(6), 2)]
    rejected = [(c[:n] + tokens(3 + i), n) for i, (c, n) in enumerate(chosen)]
    rows = chosen + rejected
    batch = {"input_ids": padded([r for r, _ in rows], PAD),
             "attention_mask": padded([[1] * len(r) for r, _ in rows], 0),
             "completion_mask": padded([[0] * n + [1] * (len(r) - n) for r, n in rows], 0)}
    return rows, batch
