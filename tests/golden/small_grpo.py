"""The GRPO part of make_small.py: its losses, and runs on samples of the model in training.

Group advantages, clipped ratios and the KL estimate: Shao et al. 2024. An upper clip of its own: Yu et al. 2025 (DAPO).
What each kind divides by, the KL times the ratio, and the metrics: TRL's documentation of GRPOTrainer and GRPOConfig.
"""

import numpy as np

import small_model as sm
from small_rows import PAD, drawer, padded

END = 2
GROUP = 3


def group_policy_loss(o, lp, old, ref, advantages, counts):
    """One of the GRPO losses on lists of per-token arrays."""
    rows, high = [], o.get("epsilon_high", 0.2)
    for l, b, r, a in zip(lp, old, ref, advantages):
        w = np.exp(l - b)
        if o["loss_type"] == "cispo":  # the weight is constant: its value is that of the unperturbed log-probs
            x = -np.minimum(np.exp(o["frozen"][len(rows)] - b), high) * a * l
        else:
            x = -np.minimum(w * a, np.clip(w, 0.8, 1 + high) * a)
        kl = np.exp(r - l) - (r - l) - 1
        rows.append(x + o["beta"] * (kl * w if o["use_bias_correction_kl"] else kl))
    total, kind = sum(x.sum() for x in rows), o["loss_type"]
    if kind == "grpo":
        return np.mean([x.mean() for x in rows])
    if kind == "dr_grpo":
        return total / (len(rows) * 6)
    return total / (counts if kind in ("dapo", "cispo") else sum(map(len, rows)))


def read(p, prompts, completions, temperature=1.0):
    """Log-probs of the completions' tokens."""
    return [sm.log_probs(p, a + c, temperature)[0][len(a) - 1:] for a, c in zip(prompts, completions)]


def arrays(prompts, completions):
    return {"prompt_ids": padded(prompts, PAD, left=True),
            "prompt_mask": padded([[1] * len(x) for x in prompts], 0, left=True),
            "completion_ids": padded(completions, PAD),
            "completion_mask": padded([[1] * len(x) for x in completions], 0)}


def numbers(rows):
    return padded([list(map(float, x)) for x in rows], 0.0)


def padded_prompts(write, model, model_name):
    """GPT-2 as GRPOTrainer trains it: position ids are not passed, so that learned positions count a prompt's padding.
    Both variants are of two micro-batches an update."""
    tokens, rng = drawer(np.random.default_rng(41)), np.random.default_rng(42)
    prompts, completions = [[1] + tokens(n) for n in (5, 2, 3)], [tokens(n) for n in (4, 5, 2)]
    first = [max(map(len, prompts)) - len(x) for x in prompts]
    look = lambda q: [model.log_probs(q, a + c, 1.0, f)[0][len(a) - 1:] for a, c, f in zip(prompts, completions, first)]
    p, advantages, items = model.random_parameters(1), [1.2, -0.7, 0.4], 14
    old, ref = ([x + 0.3 * rng.standard_normal(len(x)) for x in look(p)] for _ in range(2))
    made = {}
    for name, over, parts in (("grpo|beta=0.04", {"loss_type": "grpo", "gradient_accumulation_steps": 2}, 2),
                              ("dapo|beta=0.0", {"gradient_accumulation_steps": 2}, 1)):
        kind, beta = name.split("|beta=")
        o = {"loss_type": kind, "beta": float(beta), "use_bias_correction_kl": True}
        loss = lambda q: group_policy_loss(o, look(q), old, ref, advantages, items) / parts
        grads = sm.gradient(loss, p)
        made[name] = {"over": over, "loss": float(loss(p)), "grad_norm": sm.norm(grads),
                      "grad_l2": {n: float(np.sqrt((g * g).sum())) for n, g in grads.items()}}
    inputs = arrays(prompts, completions) | {
        "advantages": advantages, "old_per_token_logps": numbers(old), "ref_per_token_logps": numbers(ref),
        "num_items_in_batch": items}
    write("grpo_loss_variants_gpt2_tiny",
          {"inputs": inputs, "variants": made, "model_logprobs_temperature1": numbers(look(p))}, "trl.GRPOTrainer",
          {"epsilon": 0.2, "temperature": 1.0, "max_completion_length": 6, "model": model_name, "loss_type": "grpo"})


def sampled(p, prompt, rng, temperature):
    """A completion up to its end token or of 6 tokens."""
    ids = list(prompt)
    while len(ids) < len(prompt) + 6 and ids[-1] != END:
        logits = sm.hidden_states(p, ids)[-1] @ p[sm.EMBEDDING].T / temperature
        weights = np.exp(logits - logits.max())
        ids.append(int(rng.choice(len(weights), p=weights / weights.sum())))
    return ids[len(prompt):]


def rollout(p, rng, temperature):
    """Two groups of samples; the reward is the share of even ids plus a little for length."""
    prompts = [q for count in (2, 4) for q in [[1] + drawer(rng)(count)] * GROUP]
    completions = [sampled(p, q, rng, temperature) for q in prompts]
    rewards = np.array([np.mean([t % 2 == 0 for t in c]) + 0.1 * len(c) for c in completions]).reshape(-1, GROUP)
    advantages = (rewards - rewards.mean(1, keepdims=True)) / (rewards.std(1, ddof=1, keepdims=True) + 1e-4)
    return {"prompts": prompts, "completions": completions, "advantages": advantages.reshape(-1).tolist(),
            "old": read(p, prompts, completions, temperature)}


def clip_metrics(r, lp, high):
    """Shares of the tokens whose ratio is outside the clip on the side that their advantage pushes to."""
    w = np.exp(np.concatenate(lp) - np.concatenate(r["old"]))
    a = np.repeat(r["advantages"], [len(x) for x in lp])
    assert np.abs(w - 0.8).min() > 1e-3 and np.abs(w - 1 - high).min() > 1e-3, "a ratio at the kink of the clip"
    low, up = (w < 0.8) & (a < 0), (w > 1 + high) & (a > 0)
    return {"clip_ratio/low_mean": float(low.mean()), "clip_ratio/region_mean": float((low | up).mean())}


def run(write, name, seed, generations, hyper):
    """Rollouts of the present policy, each trained on num_iterations times; old log-probs from the second time on.
    What is logged after an update is the mean over its micro-batches."""
    rng, p, reference, steps = np.random.default_rng(seed), sm.random_parameters(1), sm.random_parameters(1), []
    optimizer, parts, temperature = sm.AdamW(p), hyper["gradient_accumulation_steps"], hyper["temperature"]
    for _ in range(generations):
        rollouts = [rollout(p, rng, temperature) for _ in range(parts)]
        items = sum(len(c) for r in rollouts for c in r["completions"])
        refs = [read(reference, r["prompts"], r["completions"], temperature) for r in rollouts]
        def loss(q, m):
            r = rollouts[m]
            value = group_policy_loss(hyper | {"use_bias_correction_kl": True},
                                      read(q, r["prompts"], r["completions"], temperature), r["old"], refs[m],
                                      r["advantages"], items)
            return value if hyper["loss_type"] == "dapo" else value / parts
        for iteration in range(hyper["num_iterations"]):
            reports = []
            for m, r in enumerate(rollouts):
                lp = read(p, r["prompts"], r["completions"], temperature)
                batch = arrays(r["prompts"], r["completions"]) | {"advantages": r["advantages"],
                                                                  "num_items_in_batch": items}
                if iteration > 0:
                    batch["old_per_token_logps"] = numbers(r["old"])
                metrics = clip_metrics(r, lp, hyper["epsilon_high"])
                if hyper["beta"] > 0:
                    gap = np.concatenate(refs[m]) - np.concatenate(lp)
                    w = np.exp(np.concatenate(lp) - np.concatenate(r["old"]))
                    metrics["kl"] = float(((np.exp(gap) - gap - 1) * w).mean())
                steps.append({"batch": batch, "loss": float(loss(p, m)), "lr": 1e-2, "grad_norm": None,
                              "metrics": None})
                reports.append(metrics)
            grads = sm.gradient(lambda q: sum(loss(q, m) for m in range(parts)), p)
            steps[-1]["grad_norm"] = optimizer.step(grads, 1e-2)
            steps[-1]["metrics"] = {k: sum(one[k] for one in reports) / parts for k in reports[0]}
    write(name, {"steps": steps, "final": {"params": sm.summary(p)}}, "trl.GRPOTrainer", hyper | {
        "epsilon": 0.2, "num_generations": GROUP, "scale_rewards": "group", "max_completion_length": 6,
        "ref": "initial model", "max_grad_norm": 1.0})


def runs(write):
    """On and off policy without a reference; and on policy with one, two batches an update."""
    run(write, "grpo_e2e_dapo_beta0_tiny", 31, 2, {
        "loss_type": "dapo", "beta": 0.0, "epsilon_high": 0.28, "num_iterations": 2, "temperature": 1.0,
        "gradient_accumulation_steps": 1})
    run(write, "grpo_e2e_kl_tiny", 32, 3, {
        "loss_type": "grpo", "beta": 0.04, "epsilon_high": 0.2, "num_iterations": 1, "temperature": 0.8,
        "gradient_accumulation_steps": 2})
