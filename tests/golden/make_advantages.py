"""Writes tests/golden/advantages.json: advantages of a few samples by each entry of rlhf/advantage/list.cpp.

Formulas from the papers and TRL's documentation, in float64 numpy: groups (Shao et al. 2024; a std of the group, of the
batch or none, with 1e-4 added), leave one out (Ahmadian et al. 2024), steps (Shao et al. 2024, section 4.1.3, with each
step compared with the samples' steps of the same number), GAE (Schulman et al. 2016) with the estimates k1 and k3 of
the KL (Schulman 2020) in the rewards; and those of the table in ../shared/reference/trainers.md, sections 2.1 and 2.8:
REINFORCE++ and its variant with a baseline (Hu 2025), OPO (Hao et al. 2025), GPG (Chu et al. 2025), ReMax (Li et al.
2023), GDPO (TRL's normalize_then_sum); the estimate of the reverse KL to a teacher (Agarwal et al. 2024), negated. Made
with Python 3.11.7 and numpy 2.4.6: python tests/golden/make_advantages.py
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
            "log_probs": drawn(), "reference_log_probs": drawn(), "values": drawn(),
            "baseline_sample": [0, 0, 0, 1, 1, 1],
            "reward_parts": [[1, 30.5, None], [0, 12, 0.5], [1, -4, 0.25], [1, None, 0.75], [0, 8, 1.5], [1, 2, None]],
            "reward_weights": [[1.0, 0.5, 2.0]] * len(lengths)}


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


def masked(name):
    return [np.array(x)[np.array(m, bool)] for x, m in zip(ROWS[name], ROWS["trainable"])]


def divergences(estimator):
    """KL at the trained tokens of each row."""
    gaps = [l - r for l, r in zip(masked("log_probs"), masked("reference_log_probs"))]
    return [{"k1": g, "k2": g ** 2 / 2, "k3": np.exp(-g) - 1 + g}[estimator] for g in gaps]


def spread(rows):
    masks = [np.array(m, bool) for m in ROWS["trainable"]]
    out = [np.zeros(len(m)) for m in masks]
    for to, m, x in zip(out, masks, rows):
        to[m] = x
    return [x.tolist() for x in out]


def group(scale):
    return {"advantages": at_tokens(scaled(ROWS["reward"], PROMPTS, scale))}


def less_group_mean(reward, keeps_lone):
    """Rewards less the mean of their group's, or of a sample alone its reward."""
    prompts, out = np.array(PROMPTS), np.array(reward, float)
    for p in np.unique(prompts):
        own = prompts == p
        if own.sum() > 1 or not keeps_lone:
            out[own] -= out[own].mean()
    return out


def verl_group():
    """GRPO with 1e-6 and a sample alone compared with mean 0 and std 1."""
    prompts = np.array(PROMPTS)
    stds = [1.0 if (prompts == p).sum() == 1 else std(np.array(ROWS["reward"])[prompts == p]) for p in PROMPTS]
    return {"advantages": at_tokens(less_group_mean(ROWS["reward"], True) / (np.array(stds) + 1e-6))}


def reinforce(gamma, coefficient, estimator):
    """Whitened returns of the rewards from each token on."""
    returns = []
    for kl, score in zip(divergences(estimator), ROWS["reward"]):
        r = -coefficient * kl
        r[-1] += score
        returns.append(np.array([sum(gamma ** (k - t) * r[k] for k in range(t, len(r))) for t in range(len(r))]))
    return {"advantages": spread(whitened(returns, True))}


def reinforce_baseline(keeps_lone):
    values = less_group_mean(ROWS["reward"], keeps_lone)
    return {"advantages": spread(whitened([np.full(len(m), v) for v, m in zip(values, masked("values"))], True))}


def opo(keeps_lone):
    reward, prompts = np.array(ROWS["reward"]), np.array(PROMPTS)
    lengths = np.array([len(x) for x in masked("values")])
    baseline = [(reward * lengths)[prompts == p].sum() / lengths[prompts == p].sum() for p in prompts]
    lone = np.array([keeps_lone and (prompts == p).sum() == 1 for p in prompts])
    return {"advantages": at_tokens(reward - np.where(lone, 0, baseline))}


def gpg(keeps_lone):
    scale = len(PROMPTS) / np.count_nonzero(ROWS["reward"])
    return {"advantages": at_tokens(scale * less_group_mean(ROWS["reward"], keeps_lone))}


def remax():
    """Samples that are not baselines, against that of their prompt."""
    greedy = {p: r for p, r, b in zip(PROMPTS, ROWS["reward"], ROWS["baseline_sample"]) if b}
    return {"advantages": [[r - greedy[p] if t else 0.0 for t in mask] for p, r, b, mask in zip(
        PROMPTS, ROWS["reward"], ROWS["baseline_sample"], ROWS["trainable"]) if not b]}


def gdpo(epsilon):
    parts = np.array(ROWS["reward_parts"], float)
    total, prompts = np.zeros(len(parts)), np.array(PROMPTS)
    for k, weight in enumerate(ROWS["reward_weights"][0]):
        for p in np.unique(prompts):
            at = np.flatnonzero((prompts == p) & ~np.isnan(parts[:, k]))
            if len(at):
                total[at] += weight * (parts[at, k] - parts[at, k].mean()) / (std(parts[at, k]) + epsilon)
    return {"advantages": at_tokens((total - total.mean()) / (std(total) + epsilon))}


def shaped_rloo(clip, coefficient, estimator, keeps_lone):
    """RLOO of rewards that are clipped, then less the KL of the whole sample."""
    reward = np.clip(ROWS["reward"], -clip, clip) - [coefficient * kl.sum() for kl in divergences(estimator)]
    return rloo(reward, keeps_lone)


def rloo(reward=None, keeps_lone=False):
    reward, prompts = np.array(ROWS["reward"] if reward is None else reward), np.array(PROMPTS)
    others = [reward[(prompts == p) & (np.arange(len(prompts)) != i)] for i, p in enumerate(prompts)]
    return {"advantages": at_tokens([r - o.mean() if len(o) else r if keeps_lone else 0.0
                                     for r, o in zip(reward, others)])}


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
    values, rewards = masked("values"), []
    for kl, score in zip(divergences(estimator), ROWS["reward"]):
        rewards.append(-coefficient * kl)
        rewards[-1][-1] += score
    if whiten_rewards:
        rewards = whitened(rewards, False)
    advantages = []
    for r, v in zip(rewards, values):
        delta = r + gamma * np.append(v[1:], 0.0) - v
        advantages.append(np.array([sum((gamma * lam) ** (k - t) * delta[k] for k in range(t, len(delta)))
                                    for t in range(len(delta))]))
    return {"advantages": spread(whitened(advantages, True)),
            "returns": spread([a + v for a, v in zip(advantages, values)])}


def distillation():
    return {"advantages": spread([r - l for l, r in zip(masked("log_probs"), masked("reference_log_probs"))])}


def cases():
    made = [("group", {"scale_rewards": scale}, group(scale)) for scale in ("group", "batch", "none")]
    made.append(("rloo", {}, rloo()))
    for scale, gamma in (("group", 0.5), ("batch", 0.9), ("none", 1.0)):
        made.append(("process", {"scale_rewards": scale, "gamma": gamma}, process(scale, gamma)))
    for estimator, whiten in (("k1", False), ("k3", True)):
        made.append(("gae", {"gamma": 0.97, "lambda": 0.9, "kl_coefficient": 0.2, "kl_estimator": estimator,
                             "whiten_rewards": whiten}, gae(0.97, 0.9, 0.2, estimator, whiten)))
    lone = {"lone_samples": "reward"}
    made += [("group", {"advantage_epsilon": 1e-6} | lone, verl_group()),
             ("rloo", {"reward_clip": 0.8, "kl_coefficient": 0.3, "kl_estimator": "k3"},
              shaped_rloo(0.8, 0.3, "k3", False)),
             ("rloo", {"kl_coefficient": 0.05} | lone, shaped_rloo(np.inf, 0.05, "k1", True)),
             ("reinforce_plus_plus", {}, reinforce(1.0, 0.0, "k1")),
             ("reinforce_plus_plus", {"gamma": 0.9, "kl_coefficient": 0.2, "kl_estimator": "k2"},
              reinforce(0.9, 0.2, "k2")),
             ("remax", {}, remax()), ("gdpo", {"advantage_epsilon": 1e-3}, gdpo(1e-3)),
             ("distillation", {}, distillation())]
    for name, of in (("reinforce_plus_plus_baseline", reinforce_baseline), ("opo", opo), ("gpg", gpg)):
        made += [(name, {}, of(False)), (name, lone, of(True))]
    return [{"advantage": name, "options": options} | wanted for name, options, wanted in made]


if __name__ == "__main__":
    path = pathlib.Path(__file__).parent / "advantages.json"
    path.write_text(json.dumps({"rows": ROWS, "cases": cases()}, separators=(",", ":")) + "\n")
    print(path)
