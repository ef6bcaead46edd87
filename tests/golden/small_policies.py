"""The part of make_small.py for policy losses on fixed arrays: FILES has all of them.

GRPO and its kin: small_grpo.py. SAPO (Gao et al. 2025), LUSPO (Liu et al. 2026), VESPO (Shen et al. 2026).
A new loss is a function and a file of its own in FILES, so that the numbers of the others stay as they were recorded:
python tests/golden/make_small.py NAME writes it alone. `trainer` is TRL's where TRL has the loss, else OWN.
"""

import numpy as np

import small_grpo
import small_model as sm
from small_rows import drawer, sigmoid

TRL, OWN = "trl.GRPOTrainer", "own rollouts"


def group(o, lp, old, ref, advantages, frozen, items):
    return small_grpo.group_policy_loss(o | {"frozen": frozen}, lp, old, ref, advantages, items)


def sapo(o, lp, old, ref, advantages, frozen, items):
    gate = lambda w, t: 4 / t * sigmoid(t * (w - 1))
    rows = [-gate(np.exp(l - b), 1.0 if a > 0 else 1.05) * a + o["beta"] * (np.exp(r - l) - (r - l) - 1)
            for l, b, r, a in zip(lp, old, ref, advantages)]
    return np.mean([x.mean() for x in rows])


def luspo(o, lp, old, ref, advantages, frozen, items):
    """A row's clipped loss, of the geometric mean of its tokens' ratios, times its length."""
    total = 0
    for l, b, r, a in zip(lp, old, ref, advantages):
        w = np.exp((l - b).mean())
        total += -len(l) * min(w * a, np.clip(w, 0.8, 1.2) * a) + o["beta"] * (np.exp(r - l) - (r - l) - 1).sum()
    return total / len(lp)


def vespo(o, lp, old, ref, advantages, frozen, items):
    """Weighs by the constants w^k·exp(λ(1 - w)) of a row's whole ratio w, over the tokens of the generation batch."""
    total = 0
    for l, b, r, a, f in zip(lp, old, ref, advantages, frozen):
        (k, decay), w = (2.0, 3.0) if a >= 0 else (3.0, 2.0), np.exp((f - b).sum())
        total += (-w ** k * np.exp(decay * (1 - w)) * a * l + o["beta"] * (np.exp(r - l) - (r - l) - 1)).sum()
    return total / items


def corrected(kind):
    return {"loss_type": kind, "use_bias_correction_kl": True}


def plain(kind, level="token"):
    return {"loss_type": kind, "importance_sampling_level": level, "use_bias_correction_kl": False}


# File: trainer, cases. A case: name, loss of (options, log-probs, old ones, the reference's, advantages, log-probs that
# are constants, items), options, values of beta.
BETAS = (0.0, 0.04)
FILES = {
    "grpo_loss_variants_tiny": (TRL, [
        *((kind, group, corrected(kind), BETAS) for kind in ("grpo", "dapo", "dr_grpo", "bnpo", "cispo")),
        ("grpo_plainKL", group, {"loss_type": "grpo", "use_bias_correction_kl": False}, (0.04,))]),
    "grpo_soft_variants_tiny": (TRL, [
        ("sapo", sapo, plain("sapo"), BETAS),
        ("luspo", luspo, plain("luspo", "sequence"), BETAS),
        ("vespo", vespo, plain("vespo"), BETAS)]),
}


def record(write, name, prompts, completions, rng, items):
    trainer, cases = FILES[name]
    p, advantages, made = sm.random_parameters(1), [1.2, -0.7, 0.4], {}
    look = lambda q: small_grpo.read(q, prompts, completions)
    start = look(p)
    old, ref = ([x + 0.3 * rng.standard_normal(len(x)) for x in start] for _ in range(2))
    for case, of, options, betas in cases:
        for beta in betas:
            over = {"loss_type": options["loss_type"], "beta": beta} | options
            loss = lambda q: of(over, look(q), old, ref, advantages, start, items)
            grads = sm.gradient(loss, p)
            made[f"{case}|beta={beta}"] = {"over": over, "loss": float(loss(p)), "grad_norm": sm.norm(grads),
                                           "grad_l2": {n: float(np.sqrt((g * g).sum())) for n, g in grads.items()}}
    inputs = small_grpo.arrays(prompts, completions) | {
        "advantages": advantages, "old_per_token_logps": small_grpo.numbers(old),
        "ref_per_token_logps": small_grpo.numbers(ref), "num_items_in_batch": items}
    write(name, {"inputs": inputs, "variants": made}, trainer,
          {"epsilon": 0.2, "temperature": 1.0, "max_completion_length": 6})
    return [np.exp(f - b) for f, b in zip(start, old)]


def first_file(write, tokens, rng):
    """Draws from make_small.py's own random numbers, as the files after it do."""
    prompts, completions = [[1] + tokens(2), [1] + tokens(4), [1] + tokens(2)], [tokens(4), tokens(6), tokens(2)]
    record(write, "grpo_loss_variants_tiny", prompts, completions, rng, 15)


def other_files(write):
    """All of the same arrays."""
    for name in list(FILES)[1:]:
        tokens, rng = drawer(np.random.default_rng(54)), np.random.default_rng(55)
        prompts, completions = [[1] + tokens(n) for n in (2, 4, 2)], [tokens(n) for n in (4, 6, 2)]
        for ratios in record(write, name, prompts, completions, rng, 16):
            for w in (*ratios, np.exp(np.log(ratios).mean())):
                assert min(abs(w - 0.8), abs(w - 1.2)) > 1e-3, "a ratio at the kink of the clip"
