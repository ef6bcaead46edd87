"""Writes tests/golden/advantages.json: advantages of a few samples by each entry of rlhf/advantage/list.cpp.

Formulas from the papers and TRL's documentation, in float64 numpy: groups (Shao et al. 2024; a std of the group, of the
batch or none, with 1e-4 added), leave one out (Ahmadian et al. 2024), steps (Shao et al. 2024, section 4.1.3, with each
step compared with the samples' steps of the same number), GAE (Schulman et al. 2016) with the estimates k1 and k3 of
the KL (Schulman 2020) in the rewards. Made with Python 3.11.7 and numpy 2.4.6: python tests/golden/make_advantages.py
"""

import json
import pathlib

import numpy as np

RNG = np.random.default_rng(61)
PROMPTS = [7, 9, 7, 9, 7, 4]
STEPS = [[2, 1, 2], [1, 2], [1, 1], [3], [2, 2, 1], [1, 1]]  # tokens of each step; a prompt's token stands before
HOLE = (0, 1)  # this sample's token is of no step and not trained: a tool's answer


def columns():
    lengths = [1 + sum(s) for s in STEPS]
    step = [[-1] + [j for j, n in enumerate(s) for _ in range(n)] for s in STEPS]
    trainable = [[int(j >= 0) for j in row] for row in step]
    step[HOLE[0]][HOLE[1]], trainable[HOLE[0]][HOLE[1]] = -1, 0
    rewards = [[0.0] * n for n in lengths]
    for row, steps in zip(rewards, STEPS):
        for at in np.cumsum(steps):
            row[at] = float(np.float32(RNG.standard_normal()))
    drawn = lambda: [np.float32(RNG.standard_normal(n)).astype(float).tolist() for n in lengths]
    return {"prompt_uid": PROMPTS, "trainable": trainable, "step": step, "step_rewards": rewards,
            "reward": [float(np.float32(x)) for x in (1.0, 0.25, -0.5, 2.0, 0.75, 3.0)],
            "log_probs": drawn(), "reference_log_probs": drawn(), "values": drawn()}


ROWS = columns()


def std(values):
    return np.std(values, ddof=1) if len(values) > 1 else 0.0


def scaled(values, groups, scale):
    """values less their group's mean, by the std that `scale` says; all as lists over the same places."""
    values, groups = np.array(values), np.array(groups)
    out = np.empty(len(values))
    for g in np.unique(groups):
        own = values[groups == g]
        by = {"group": std(own) + 1e-4, "batch": std(values) + 1e-4, "none": 1.0}[scale]
        out[groups == g] = (own - own.mean()) / by
    return out


def at_tokens(of_rows):
    return [[a if t else 0.0 for t in row] for a, row in zip(of_rows, ROWS["trainable"])]


def group(scale):
    return {"advantages": at_tokens(scaled(ROWS["reward"], PROMPTS, scale))}


def rloo():
    reward, prompts = np.array(ROWS["reward"]), np.array(PROMPTS)
    others = [reward[(prompts == p) & (np.arange(len(prompts)) != i)] for i, p in enumerate(prompts)]
    return {"advantages": at_tokens([r - o.mean() if len(o) else 0.0 for r, o in zip(reward, others)])}


def process(scale, gamma):
    returns, places = [], []
    for i, steps in enumerate(STEPS):
        earned = [ROWS["step_rewards"][i][at] for at in np.cumsum(steps)]
        for j in range(len(earned)):
            returns.append(sum(gamma ** (k - j) * earned[k] for k in range(j, len(earned))))
            places.append((i, j))
    values = scaled(returns, [1000 * PROMPTS[i] + j for i, j in places], scale)
    known = dict(zip(places, values))
    return {"advantages": [[known[i, j] if t and j >= 0 else 0.0 for t, j in zip(mask, step)]
                           for i, (mask, step) in enumerate(zip(ROWS["trainable"], ROWS["step"]))]}


def whitened(rows, shift):
    flat = np.concatenate(rows)
    return [(x - flat.mean()) / np.sqrt(flat.var(ddof=1) + 1e-8) + (0.0 if shift else flat.mean()) for x in rows]


def gae(gamma, lam, coefficient, estimator, whiten_rewards):
    masks = [np.array(m, bool) for m in ROWS["trainable"]]
    lp, ref, values = ([np.array(x)[m] for x, m in zip(ROWS[name], masks)]
                       for name in ("log_probs", "reference_log_probs", "values"))
    rewards = []
    for l, r, score in zip(lp, ref, ROWS["reward"]):
        kl = l - r if estimator == "k1" else np.exp(r - l) - 1 - (r - l)
        rewards.append(-coefficient * kl)
        rewards[-1][-1] += score
    if whiten_rewards:
        rewards = whitened(rewards, False)
    advantages = []
    for r, v in zip(rewards, values):
        delta = r + gamma * np.append(v[1:], 0.0) - v
        advantages.append(np.array([sum((gamma * lam) ** (k - t) * delta[k] for k in range(t, len(delta)))
                                    for t in range(len(delta))]))
    def spread(rows):
        out = [np.zeros(len(m)) for m in masks]
        for to, m, x in zip(out, masks, rows):
            to[m] = x
        return [x.tolist() for x in out]
    return {"advantages": spread(whitened(advantages, True)),
            "returns": spread([a + v for a, v in zip(advantages, values)])}


def cases():
    made = [("group", {"scale_rewards": scale}, group(scale)) for scale in ("group", "batch", "none")]
    made.append(("rloo", {}, rloo()))
    for scale, gamma in (("group", 0.5), ("batch", 0.9), ("none", 1.0)):
        made.append(("process", {"scale_rewards": scale, "gamma": gamma}, process(scale, gamma)))
    for estimator, whiten in (("k1", False), ("k3", True)):
        made.append(("gae", {"gamma": 0.97, "lambda": 0.9, "kl_coefficient": 0.2, "kl_estimator": estimator,
                             "whiten_rewards": whiten}, gae(0.97, 0.9, 0.2, estimator, whiten)))
    return [{"advantage": name, "options": options} | wanted for name, options, wanted in made]


if __name__ == "__main__":
    path = pathlib.Path(__file__).parent / "advantages.json"
    path.write_text(json.dumps({"rows": ROWS, "cases": cases()}, separators=(",", ":")) + "\n")
    print(path)
