"""The PPO part of make_small.py: advantages and losses on fixed arrays, and one update of policy and value model."""

import numpy as np

import small_model as sm


def whitened(rows):
    flat = np.concatenate(rows)
    return [(r - flat.mean()) / np.sqrt(flat.var(ddof=1) + 1e-8) for r in rows]


def gae(rewards, values, gamma, lam):
    advantages, last = np.zeros(len(rewards)), 0.0
    for t in reversed(range(len(rewards))):
        following = values[t + 1] if t + 1 < len(values) else 0.0
        last = rewards[t] + gamma * following - values[t] + gamma * lam * last
        advantages[t] = last
    return advantages, advantages + values


def policy_loss(new, old, advantages, clip=0.2):
    w = np.exp(np.concatenate(new) - np.concatenate(old))
    a = np.concatenate(advantages)
    return np.maximum(-a * w, -a * np.clip(w, 1 - clip, 1 + clip)).mean()


def value_loss(new, old, returns, clip=0.2):
    new, old, returns = map(np.concatenate, (new, old, returns))
    return 0.5 * np.maximum((new - returns) ** 2, (np.clip(new, old - clip, old + clip) - returns) ** 2).mean()


def wide(rows, width):
    return [list(map(float, r)) + [0.0] * (width - len(r)) for r in rows]


def arrays(write):
    rng = np.random.default_rng(9)
    lengths, width = [5, 2, 4], 5
    old = [-rng.exponential(1.0, n) for n in lengths]
    near = lambda spread: [x + spread * rng.standard_normal(len(x)) for x in old]
    new, ref, values = near(0.3), near(0.3), [rng.standard_normal(n) for n in lengths]
    new_values, score = [v + 0.3 * rng.standard_normal(len(v)) for v in values], rng.standard_normal(3)
    cases = []
    for gamma, lam, kl, over in ((1.0, 0.95, 0.05, {}), (0.9, 0.8, 0.0, {}), (1.0, 0.9, 0.3, {"kl_estimator": "k3"})):
        rewards = [-kl * (np.exp(r - o) - 1 - (r - o) if over else o - r) for o, r in zip(old, ref)]
        for r, s in zip(rewards, score):
            r[-1] += s
        raw, returns = zip(*(gae(r, v, gamma, lam) for r, v in zip(rewards, values)))
        white = whitened(raw)
        cases.append({"gamma": gamma, "lam": lam, "kl_coef": kl} | over | {
            "rewards": wide(rewards, width), "advantages_raw": wide(raw, width), "returns": wide(returns, width),
            "advantages_whitened": wide(white, width), "pg_loss": float(policy_loss(new, old, white)),
            "vf_loss": float(value_loss(new_values, values, returns))})
    inputs = {"mask": [[t < n for t in range(width)] for n in lengths], "score": score.tolist()} | {
        k: wide(v, width) for k, v in (("old_logprobs", old), ("new_logprobs", new), ("ref_logprobs", ref),
                                       ("values", values), ("new_values", new_values))}
    write("ppo_arrays_tiny", {"cliprange": 0.2, "cliprange_value": 0.2, "inputs": inputs, "cases": cases},
          "plain numpy", {})


def updates(write, tokens):
    """Three rollouts, one of them short: the value after its last token counts, the score lands there."""
    rng = np.random.default_rng(11)
    temperature, width, context = 0.7 + 1e-7, 4, 3
    prompts, answers = [[1] + tokens(2), [1] + tokens(1), [1] + tokens(2)], [tokens(4), tokens(2), tokens(4)]
    head = lambda: rng.standard_normal((1, 8)).astype(np.float32).astype(np.float64)
    policy, value = sm.random_parameters(1), sm.random_parameters(1) | {"score.weight": head()}
    reward = sm.random_parameters(1) | {"score.weight": head()}
    states = [min(len(a) + 1, width) for a in answers]
    read = lambda p, r: sm.log_probs(p, prompts[r] + answers[r], temperature)[0][len(prompts[r]) - 1:]
    look = lambda p, r: (sm.hidden_states(p, prompts[r] + answers[r]) @ p["score.weight"][0])[
        len(prompts[r]) - 1:][:states[r]]
    rows = range(3)
    lp, values = [read(policy, r) for r in rows], [look(value, r) for r in rows]
    scores = [float(sm.hidden_states(reward, prompts[r] + answers[r])[-1] @ reward["score.weight"][0]) for r in rows]
    rewards = [np.zeros(n) for n in states]  # policy and reference are the same, so the KL is 0
    for r in rows:
        rewards[r][-1] += scores[r]
    raw, returns = zip(*(gae(rewards[r], values[r], 1.0, 0.95) for r in rows))
    advantages = whitened([a[:len(x)] for a, x in zip(raw, answers)])
    optimizers = [sm.AdamW(p, max_norm=0.0) for p in (policy, value)]
    heads = {"reward": reward["score.weight"][0].tolist(), "value": value["score.weight"][0].tolist()}
    micros = []
    for epoch in range(2):
        inds = [2, 1, 0] if epoch == 0 else [0, 1]
        part = lambda x: [x[r] for r in inds]
        pg = lambda p: policy_loss([read(p, r) for r in inds], part(lp), part(advantages))
        vf = lambda p: value_loss([look(p, r) for r in inds], part(values), part(returns))
        record = {"epoch": epoch, "inds": inds, "pg_loss": float(pg(policy)), "vf_loss": float(vf(value)), "lr": 1e-2}
        # The kink of clip at ratio 1 ± 0.2 is not met; at ratio 1 both branches agree.
        grads = sm.gradient(pg, policy), sm.gradient(lambda p: 0.1 * vf(p), value)
        record["grad_norm"] = float(np.hypot(*(o.step(g, 1e-2) for o, g in zip(optimizers, grads))))
        micros.append(record | {"loss": record["pg_loss"] + 0.1 * record["vf_loss"]})
    mask = lambda lengths: [[t >= n for t in range(width)] for n in lengths]
    update = {"query_responses": [[0] * (context - len(p)) + p + a + [0] * (width - len(a))
                                  for p, a in zip(prompts, answers)],
              "padding_mask": mask(map(len, answers)), "padding_mask_p1": mask(states), "logprobs": wide(lp, width),
              "ref_logprobs": wide(lp, width), "values": wide(values, width), "scores": scores,
              "rewards": wide(rewards, width), "advantages": wide(advantages, width), "returns": wide(returns, width),
              "context_length": context, "micro": micros}
    write("ppo_e2e_tiny", {"heads": heads, "updates": [update],
                           "final": {"policy": sm.summary(policy), "value": sm.summary(value)}}, "trl.PPOTrainer",
          {"temperature": 0.7, "kl_coef": 0.05, "vf_coef": 0.1, "gamma": 1.0, "lam": 0.95, "cliprange": 0.2,
           "cliprange_value": 0.2})
