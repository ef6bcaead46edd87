"""Writes tests/golden/small/: small goldens of every shape that collimate-goldens replays, and their model.

Formulas from the papers and TRL's documentation; numbers in float64 numpy, gradients by central differences.
Made with Python 3.11.7 and numpy 2.4.6: python tests/golden/make_small.py
"""

import json
import pathlib

import numpy as np

import small_model as sm

HERE = pathlib.Path(__file__).parent / "small"
PAD = 0
RNG = np.random.default_rng(5)


def softplus(x):
    return np.logaddexp(0.0, x)


def write(name, content, trainer, hyper):
    head = {"golden": name, "trainer": trainer, "versions": {"numpy": np.__version__},
            "hyper": {"model": "tiny", "pad": PAD} | hyper}
    (HERE / f"{name}.json").write_text(json.dumps(head | content, separators=(",", ":")))
    print(name, flush=True)


def tokens(count):
    return [int(t) for t in RNG.integers(3, 16, count)]


def padded(rows, fill, width=None, left=False):
    width = width or max(map(len, rows))
    return [[fill] * (width - len(r)) + list(r) if left else list(r) + [fill] * (width - len(r)) for r in rows]


def completion_sum(p, row, prompt):
    return sm.log_probs(p, row)[0][prompt - 1:].sum()


def sft():
    p = sm.random_parameters(1)
    optimizer = sm.AdamW(p, decay=0.1)
    before, steps = sm.summary(p), []
    for lr, micros in ((0.0, 1), (1e-2, 2), (5e-3, 1)):
        batches = [[([1] + tokens(5 + i), 2 + i) for i in range(2)] for _ in range(micros)]
        items = sum(len(r) - n for b in batches for r, n in b)
        loss = lambda q, part: -sum(completion_sum(q, r, n) for r, n in part) / items
        grads = sm.gradient(lambda q: sum(loss(q, b) for b in batches), p)
        recorded = [{"batch": {"input_ids": padded([r for r, _ in b], PAD),
                               "labels": padded([[-100] * n + r[n:] for r, n in b], -100),
                               "attention_mask": padded([[1] * len(r) for r, _ in b], 0)},
                     "loss": loss(p, b), "num_items_in_batch": items} for b in batches]
        steps.append({"micro": recorded, "lr": lr, "grad_norm": optimizer.step(grads, lr)})
    write("sft_tiny", {"params_before": before, "steps": steps, "final": {"params": sm.summary(p)}}, "trl.SFTTrainer",
          {"weight_decay": 0.1, "max_grad_norm": 1.0, "gradient_accumulation_steps": 2})


def pairs():
    chosen = [([1] + tokens(5), 3), ([1] + tokens(6), 2)]
    rejected = [(c[:n] + tokens(3 + i), n) for i, (c, n) in enumerate(chosen)]
    rows = chosen + rejected
    batch = {"input_ids": padded([r for r, _ in rows], PAD),
             "attention_mask": padded([[1] * len(r) for r, _ in rows], 0),
             "completion_mask": padded([[0] * n + [1] * (len(r) - n) for r, n in rows], 0)}
    return rows, batch


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def dpo_losses(beta):
    """Losses of log-ratios c, r of pairs and their lengths k, l: name -> (options, function)."""
    logistic = lambda x: softplus(-beta * x)
    smooth = lambda x, e: (1 - e) * logistic(x) + e * logistic(-x)
    blend = lambda x: sigmoid(beta * x / 0.05)
    return {"sigmoid": ({}, lambda c, r, k, l: logistic(c - r)),
            "hinge": ({}, lambda c, r, k, l: np.maximum(0, 1 - beta * (c - r))),
            "ipo": ({}, lambda c, r, k, l: (c / k - r / l - 1 / (2 * beta)) ** 2),
            "sigmoid_norm": ({}, lambda c, r, k, l: logistic(c / k - r / l)),
            "robust": ({"label_smoothing": 0.2},
                       lambda c, r, k, l: (0.8 * logistic(c - r) - 0.2 * logistic(r - c)) / 0.6),
            "exo_pair": ({"label_smoothing": 0.2}, lambda c, r, k, l: sigmoid(beta * (c - r)) * (
                -logistic(c - r) - np.log(0.8)) + sigmoid(beta * (r - c)) * (-logistic(r - c) - np.log(0.2))),
            "nca_pair": ({}, lambda c, r, k, l: logistic(c) + 0.5 * logistic(-c) + 0.5 * logistic(-r)),
            "bco_pair": ({}, lambda c, r, k, l: logistic(c) + logistic(-r)),
            "sppo_hard": ({}, lambda c, r, k, l: (c - 0.5 / beta) ** 2 + (r + 0.5 / beta) ** 2),
            "aot_unpaired": ({"label_smoothing": 0.1}, lambda c, r, k, l: smooth(np.sort(c) - np.sort(r), 0.1)),
            "apo_zero": ({}, lambda c, r, k, l: 1 - sigmoid(beta * c) + sigmoid(beta * r)),
            "apo_down": ({}, lambda c, r, k, l: sigmoid(beta * c) + 1 - sigmoid(beta * (c - r))),
            "discopop": ({}, lambda c, r, k, l: logistic(c - r) * (1 - blend(c - r))
                         + np.exp(-beta * (c - r)) * blend(c - r)),
            "sigmoid+forward_kl": ({"f_divergence_type": "forward_kl"},
                                   lambda c, r, k, l: logistic(np.exp(-r) - np.exp(-c)))}


def dpo(batches):
    beta, variants = 0.1, {}
    for name, (over, pair_loss) in dpo_losses(beta).items():
        p, reference, steps = sm.random_parameters(1), sm.random_parameters(1), []
        optimizer = sm.AdamW(p)
        for rows, _ in batches:
            def loss(q):
                ratio = np.array([completion_sum(q, r, n) - completion_sum(reference, r, n) for r, n in rows])
                lengths = np.array([len(r) - n for r, n in rows])
                return pair_loss(*np.split(ratio, 2), *np.split(lengths, 2)).mean()
            value = float(loss(p))
            steps.append({"loss": value, "grad_norm": optimizer.step(sm.gradient(loss, p), 1e-2), "lr": 1e-2})
        variants[name] = {"over": over, "steps": steps, "final": {"params": sm.summary(p)}}
    write("dpo_variants_tiny", {"batches": [b for _, b in batches], "variants": variants}, "trl.DPOTrainer",
          {"beta": beta, "loss_type": "per variant", "max_grad_norm": 1.0})


def without_reference(name, trainer, hyper, batches, loss):
    """Steps of ORPO, CPO or SimPO: loss(policy's parameters, chosen rows, rejected rows)."""
    p, steps = sm.random_parameters(1), []
    optimizer = sm.AdamW(p)
    for rows, _ in batches:
        half = len(rows) // 2
        value = lambda q: loss(q, rows[:half], rows[half:])
        batch = {}
        for side, part in (("chosen_", rows[:half]), ("rejected_", rows[half:])):
            batch |= {side + "input_ids": padded([r for r, _ in part], PAD),
                      side + "attention_mask": padded([[1] * len(r) for r, _ in part], 0),
                      side + "labels": padded([[-100] * n + r[n:] for r, n in part], -100)}
        recorded = {"micro": [{"batch": batch, "loss": float(value(p))}], "lr": 1e-2}
        steps.append(recorded | {"grad_norm": optimizer.step(sm.gradient(value, p), 1e-2)})
    write(name, {"steps": steps, "final": {"params": sm.summary(p)}}, trainer, {"max_grad_norm": 1.0} | hyper)


def answer_means(p, rows):
    return np.array([completion_sum(p, r, n) / (len(r) - n) for r, n in rows])


def likelihood_loss(p, rows, prompts):
    """Over the answers alone, or with all of their prompts but the first token."""
    begins = [1 if prompts else n for _, n in rows]
    return -sum(completion_sum(p, r, n) for (r, _), n in zip(rows, begins)) / sum(
        len(r) - n for (r, _), n in zip(rows, begins))


def orpo_loss(p, chosen, rejected):
    odds = lambda m: m - np.log1p(-np.exp(m))
    ratio = odds(answer_means(p, chosen)) - odds(answer_means(p, rejected))
    return likelihood_loss(p, chosen, True) + 0.3 * softplus(-ratio).mean()


def simpo_loss(p, chosen, rejected):
    margin = 2.0 * (answer_means(p, chosen) - answer_means(p, rejected)) - 0.7
    return softplus(-margin).mean() + 0.5 * likelihood_loss(p, chosen, False)


def kto(batches):
    """Every answer is marked; mismatched ones give the KL estimate, which has no gradient."""
    p, reference, steps = sm.random_parameters(1), sm.random_parameters(1), []
    optimizer = sm.AdamW(p)
    for rows, batch in batches:
        labels = [i % 2 == 0 for i in range(len(rows))]
        other = [(rows[i][0][:rows[i][1]] + rows[i - 1][0][rows[i - 1][1]:], rows[i][1]) for i in range(len(rows))]
        ratio = lambda q, part: np.array([completion_sum(q, r, n) - completion_sum(reference, r, n) for r, n in part])
        kl = max(0.0, ratio(p, other).mean())
        def loss(q):
            sign = np.where(labels, 1.0, -1.0)
            return (np.where(labels, 1.0, 1.5) * (1 - sigmoid(0.1 * sign * (ratio(q, rows) - kl)))).mean()
        mismatched = {"KL_input_ids": padded([r for r, _ in other], PAD),
                      "KL_attention_mask": padded([[1] * len(r) for r, _ in other], 0),
                      "KL_completion_mask": padded([[0] * n + [1] * (len(r) - n) for r, n in other], 0)}
        steps.append({"micro": [{"batch": batch | mismatched | {"label": labels}, "loss": float(loss(p))}], "lr": 1e-2,
                      "grad_norm": optimizer.step(sm.gradient(loss, p), 1e-2)})
    write("kto_tiny", {"steps": steps, "final": {"params": sm.summary(p)}}, "trl.KTOTrainer",
          {"beta": 0.1, "undesirable_weight": 1.5, "max_grad_norm": 1.0})


def reward(batches):
    p = sm.random_parameters(1) | {"score.weight": RNG.standard_normal((1, 8)).astype(np.float32).astype(np.float64)}
    head, optimizer, steps = p["score.weight"][0].tolist(), sm.AdamW(p), []
    for rows, batch in batches:
        margin = [0.25, 0.5]
        def loss(q):
            scores = np.array([sm.hidden_states(q, r)[-1] @ q["score.weight"][0] for r, _ in rows])
            c, r = np.split(scores, 2)
            return (softplus(-(c - r - margin)) + 0.01 * (c + r) ** 2).mean()
        value = float(loss(p))
        record = {k: batch[k] for k in ("input_ids", "attention_mask")} | {"margin": margin}
        steps.append({"micro": [{"batch": record, "loss": value}], "lr": 1e-2,
                      "grad_norm": optimizer.step(sm.gradient(loss, p), 1e-2)})
    write("rm_tiny", {"head_weight": head, "steps": steps, "final": {"params": sm.summary(p)}}, "trl.RewardTrainer",
          {"max_grad_norm": 1.0, "center_rewards_coefficient": 0.01})


def group_policy_loss(o, lp, old, ref, advantages, counts):
    """One of the GRPO losses on lists of per-token arrays."""
    rows = []
    for l, b, r, a in zip(lp, old, ref, advantages):
        w = np.exp(l - b)
        if o["loss_type"] == "cispo":  # the weight is constant: its value is that of the unperturbed log-probs
            x = -np.minimum(np.exp(o["frozen"][len(rows)] - b), o.get("epsilon_high", 0.2)) * a * l
        else:
            x = -np.minimum(w * a, np.clip(w, 0.8, 1.2) * a)
        kl = np.exp(r - l) - (r - l) - 1
        rows.append(x + o["beta"] * (kl * w if o["use_bias_correction_kl"] else kl))
    total, kind = sum(x.sum() for x in rows), o["loss_type"]
    if kind == "grpo":
        return np.mean([x.mean() for x in rows])
    if kind == "dr_grpo":
        return total / (len(rows) * 6)
    return total / (counts if kind in ("dapo", "cispo") else sum(map(len, rows)))


def grpo():
    prompts, completions = [[1] + tokens(2), [1] + tokens(4), [1] + tokens(2)], [tokens(4), tokens(6), tokens(2)]
    advantages, items = [1.2, -0.7, 0.4], 15
    p = sm.random_parameters(1)
    read = lambda q: [sm.log_probs(q, a + c)[0][len(a) - 1:] for a, c in zip(prompts, completions)]
    start = read(p)
    old, ref = ([x + 0.3 * RNG.standard_normal(len(x)) for x in start] for _ in range(2))
    rows = lambda arrays: padded([list(map(float, x)) for x in arrays], 0.0)
    inputs = {"prompt_ids": padded(prompts, PAD, left=True),
              "prompt_mask": padded([[1] * len(x) for x in prompts], 0, left=True),
              "completion_ids": padded(completions, PAD),
              "completion_mask": padded([[1] * len(x) for x in completions], 0),
              "advantages": advantages, "old_per_token_logps": rows(old), "ref_per_token_logps": rows(ref),
              "num_items_in_batch": items}
    variants = {}
    cases = [(kind, beta, True) for kind in ("grpo", "dapo", "dr_grpo", "bnpo", "cispo") for beta in (0.0, 0.04)]
    for kind, beta, corrected in cases + [("grpo", 0.04, False)]:
        over = {"loss_type": kind, "beta": beta, "use_bias_correction_kl": corrected}
        loss = lambda q: group_policy_loss(over | {"frozen": start}, read(q), old, ref, advantages, items)
        grads = sm.gradient(loss, p)
        name = f"{kind}{'' if corrected else '_plainKL'}|beta={beta}"
        variants[name] = {"over": over, "loss": float(loss(p)), "grad_norm": sm.norm(grads),
                          "grad_l2": {n: float(np.sqrt((g * g).sum())) for n, g in grads.items()}}
    write("grpo_loss_variants_tiny", {"inputs": inputs, "variants": variants}, "trl.GRPOTrainer",
          {"epsilon": 0.2, "temperature": 1.0, "max_completion_length": 6})


if __name__ == "__main__":
    import small_ppo
    (HERE / "models" / "tiny").mkdir(parents=True, exist_ok=True)
    (HERE / "models" / "tiny" / "config.json").write_text(json.dumps(sm.CONFIG, indent=1) + "\n")
    sm.write_safetensors(HERE / "models" / "tiny" / "model.safetensors", sm.random_parameters(1))
    sft()
    made = [pairs() for _ in range(2)]
    dpo(made)
    reward(made)
    grpo()
    small_ppo.arrays(write)
    small_ppo.updates(write, tokens)
    without_reference("orpo_tiny", "trl.experimental.ORPOTrainer", {"beta": 0.3}, made, orpo_loss)
    without_reference("simpo_tiny", "trl.experimental.CPOTrainer",
                      {"loss_type": "simpo", "beta": 2.0, "simpo_gamma": 0.7, "cpo_alpha": 0.5}, made, simpo_loss)
    kto(made)
