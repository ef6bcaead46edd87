"""The part of make_small.py for losses with files of their own; none of them draws from another's random numbers.

DFT (Wu et al. 2025), APO-zero on marked answers (D'Oosterlinck et al. 2024), AOT (Melnyk et al. 2024), SAPO (Gao et al.
2025), LUSPO (Liu et al. 2026), VESPO (Shen et al. 2026), and the likelihood that TRL's DPOTrainer calls "sft".
"""

import numpy as np

import small_grpo
import small_model as sm
from small_rows import PAD, completion_sum, drawer, padded, pairs, sigmoid, softplus


def dft(write):
    """Each token's negative log-likelihood times its probability, which is a constant to the gradient."""
    p, steps, tokens = sm.random_parameters(1), [], drawer(np.random.default_rng(51))
    optimizer = sm.AdamW(p)
    answers = lambda q, rows: [sm.log_probs(q, r)[0][n - 1:] for r, n in rows]
    for lr, micros in ((1e-2, 2), (5e-3, 1)):
        batches = [[([1] + tokens(5 + i), 2 + i) for i in range(2)] for _ in range(micros)]
        items = sum(len(r) - n for b in batches for r, n in b)
        weights = [[np.exp(x) for x in answers(p, b)] for b in batches]
        loss = lambda q, m: -sum((w * x).sum() for w, x in zip(weights[m], answers(q, batches[m]))) / items
        recorded = [{"batch": {"input_ids": padded([r for r, _ in b], PAD),
                               "labels": padded([[-100] * n + r[n:] for r, n in b], -100),
                               "attention_mask": padded([[1] * len(r) for r, _ in b], 0)},
                     "loss": float(loss(p, m)), "num_items_in_batch": items} for m, b in enumerate(batches)]
        grads = sm.gradient(lambda q: sum(loss(q, m) for m in range(micros)), p)
        steps.append({"micro": recorded, "lr": lr, "grad_norm": optimizer.step(grads, lr)})
    write("sft_dft_tiny", {"steps": steps, "final": {"params": sm.summary(p)}}, "trl.SFTTrainer",
          {"loss_type": "dft", "max_grad_norm": 1.0})


def apo_zero_unpaired(write):
    """Marked answers, each by its own log-ratio to the initial model: nothing is subtracted from it."""
    p, reference, steps = sm.random_parameters(1), sm.random_parameters(1), []
    tokens, optimizer, beta = drawer(np.random.default_rng(52)), sm.AdamW(p), 0.2
    for _ in range(2):
        rows, batch = pairs(tokens)
        labels = [True, False, False, True]
        def loss(q):
            x = beta * np.array([completion_sum(q, r, n) - completion_sum(reference, r, n) for r, n in rows])
            return np.where(labels, 0.8 * (1 - sigmoid(x)), 1.5 * sigmoid(x)).mean()
        steps.append({"micro": [{"batch": batch | {"label": labels}, "loss": float(loss(p))}], "lr": 1e-2,
                      "grad_norm": optimizer.step(sm.gradient(loss, p), 1e-2)})
    write("kto_apo_zero_unpaired_tiny", {"steps": steps, "final": {"params": sm.summary(p)}}, "trl.KTOTrainer",
          {"loss_type": "apo_zero_unpaired", "beta": beta, "desirable_weight": 0.8, "undesirable_weight": 1.5,
           "max_grad_norm": 1.0})


def quantile_loss(policy, reference, beta, smoothing):
    """AOT: the policy's margins against the reference's, the least with the least and so on."""
    x = beta * (np.sort(policy) - np.sort(reference))
    return ((1 - smoothing) * softplus(-x) + smoothing * softplus(x)).mean()


def dpo_of_batches(write):
    """Losses of a batch that are no mean over its pairs: AOT and the likelihood of the chosen answers' tokens."""
    beta, tokens, made, crossed = 0.5, drawer(np.random.default_rng(53)), {}, False
    batches = []
    for _ in range(3):  # of four pairs each, chosen answers first
        halves = [pairs(tokens)[0] for _ in range(2)]
        batches.append([r for part in (slice(0, 2), slice(2, 4)) for rows in halves for r in rows[part]])
    for name, over in (("aot", {"loss_type": "aot", "label_smoothing": 0.1}), ("sft", {"loss_type": "sft"})):
        p, reference, steps = sm.random_parameters(1), sm.random_parameters(1), []
        optimizer = sm.AdamW(p)
        for rows in batches:
            sums = lambda q: np.array([completion_sum(q, r, n) for r, n in rows])
            margins = lambda q: np.subtract(*np.split(sums(q), 2))
            start, half = margins(reference), len(rows) // 2
            def loss(q):
                if name == "aot":
                    return quantile_loss(margins(q), start, beta, 0.1)
                return -sums(q)[:half].sum() / sum(len(r) - n for r, n in rows[:half])
            crossed |= bool((np.argsort(margins(p)) != np.argsort(start)).any())
            steps.append({"loss": float(loss(p)), "grad_norm": optimizer.step(sm.gradient(loss, p), 3e-2), "lr": 3e-2})
        made[name] = {"over": over, "steps": steps, "final": {"params": sm.summary(p)}}
        assert name != "aot" or crossed, "margins in the reference's order throughout: sorting changes nothing"
    recorded = [{"input_ids": padded([r for r, _ in rows], PAD),
                 "attention_mask": padded([[1] * len(r) for r, _ in rows], 0),
                 "completion_mask": padded([[0] * n + [1] * (len(r) - n) for r, n in rows], 0)} for rows in batches]
    write("dpo_batch_variants_tiny", {"batches": recorded, "variants": made}, "trl.DPOTrainer",
          {"beta": beta, "loss_type": "per variant", "max_grad_norm": 1.0})


def sapo(o, lp, old, ref, advantages, frozen):
    gate = lambda w, t: 4 / t * sigmoid(t * (w - 1))
    rows = [-gate(np.exp(l - b), 1.0 if a > 0 else 1.05) * a + o["beta"] * (np.exp(r - l) - (r - l) - 1)
            for l, b, r, a in zip(lp, old, ref, advantages)]
    return np.mean([x.mean() for x in rows])


def luspo(o, lp, old, ref, advantages, frozen):
    """A row's clipped loss, of the geometric mean of its tokens' ratios, times its length."""
    total = 0
    for l, b, r, a in zip(lp, old, ref, advantages):
        w = np.exp((l - b).mean())
        total += -len(l) * min(w * a, np.clip(w, 0.8, 1.2) * a) + o["beta"] * (np.exp(r - l) - (r - l) - 1).sum()
    return total / len(lp)


def vespo(o, lp, old, ref, advantages, frozen):
    """Weighs by the constants w^k·exp(λ(1 - w)) of a row's whole ratio w, over the tokens of the generation batch."""
    total = 0
    for l, b, r, a, f in zip(lp, old, ref, advantages, frozen):
        (k, decay), w = (2.0, 3.0) if a >= 0 else (3.0, 2.0), np.exp((f - b).sum())
        total += (-w ** k * np.exp(decay * (1 - w)) * a * l + o["beta"] * (np.exp(r - l) - (r - l) - 1)).sum()
    return total / 16


def policies(write):
    tokens, rng = drawer(np.random.default_rng(54)), np.random.default_rng(55)
    prompts, completions = [[1] + tokens(n) for n in (2, 4, 2)], [tokens(n) for n in (4, 6, 2)]
    p, advantages, made = sm.random_parameters(1), [1.2, -0.7, 0.4], {}
    look = lambda q: small_grpo.read(q, prompts, completions)
    start = look(p)
    old, ref = ([x + 0.3 * rng.standard_normal(len(x)) for x in start] for _ in range(2))
    for a, b, f in zip(advantages, old, start):
        for w in (*np.exp(f - b), np.exp((f - b).mean())):
            assert min(abs(w - 0.8), abs(w - 1.2)) > 1e-3, "a ratio at the kink of the clip"
    for of, level in ((sapo, "token"), (luspo, "sequence"), (vespo, "token")):
        for beta in (0.0, 0.04):
            over = {"loss_type": of.__name__, "beta": beta, "importance_sampling_level": level}
            loss = lambda q: of(over, look(q), old, ref, advantages, start)
            grads = sm.gradient(loss, p)
            made[f"{of.__name__}|beta={beta}"] = {
                "over": over | {"use_bias_correction_kl": False}, "loss": float(loss(p)), "grad_norm": sm.norm(grads),
                "grad_l2": {n: float(np.sqrt((g * g).sum())) for n, g in grads.items()}}
    inputs = small_grpo.arrays(prompts, completions) | {
        "advantages": advantages, "old_per_token_logps": small_grpo.numbers(old),
        "ref_per_token_logps": small_grpo.numbers(ref), "num_items_in_batch": 16}
    write("grpo_soft_variants_tiny", {"inputs": inputs, "variants": made}, "trl.GRPOTrainer",
          {"epsilon": 0.2, "temperature": 1.0, "max_completion_length": 6})


def all_of(write):
    dft(write)
    apo_zero_unpaired(write)
    dpo_of_batches(write)
    policies(write)
