"""The part of make_small.py for policy losses on fixed arrays: FILES has all of them.

GRPO and its kin: small_grpo.py. SAPO (Gao et al. 2025), LUSPO (Liu et al. 2026), VESPO (Shen et al. 2026), GMPO (Zhao
et al. 2025), clip-cov and KL-cov (Cui et al. 2025), GPG (Chu et al. 2025), RLOO's loss of whole sequences (Ahmadian et
al. 2024, as TRL has it), online DPO and IPO (Guo et al. 2024), and the bounds and estimators of verl (2.8 of
../shared/reference/trainers.md) and ChatLearn.
A new loss is a function and a file of its own in FILES, so that the numbers of the others stay as they were recorded:
python tests/golden/make_small.py NAME writes it alone. `trainer` is TRL's where TRL has the loss, else OWN.
"""

import numpy as np

import small_grpo
import small_model as sm
from small_rows import drawer, sigmoid, softplus

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


def kl3(r, l):
    return np.exp(r - l) - (r - l) - 1


def gmpo(o, lp, old, ref, advantages, frozen, items):
    """The geometric mean of a row's ratios, each clipped in its logarithm on the side of the advantage."""
    low, high, total = -0.2, o["epsilon_high"], 0
    for l, b, r, a in zip(lp, old, ref, advantages):
        x = np.minimum(l - b, high) if a > 0 else np.maximum(l - b, low)
        total += -a * np.exp(x.mean()) + o["beta"] * kl3(r, l).mean()
    return total / len(lp)


def flat(lp, old, ref, advantages, frozen):
    """All tokens in a row: log-prob, old one, the reference's, advantage, log-prob that is a constant, covariance."""
    a = np.repeat(advantages, [len(x) for x in lp])
    l, b, r, f = (np.concatenate(x) for x in (lp, old, ref, frozen))
    return l, b, r, a, f, (a - a.mean()) * (f - f.mean())


def clip_cov(o, lp, old, ref, advantages, frozen, items):
    """Drops the tokens between the bounds; as many as may be dropped, so that no draw decides."""
    l, b, r, a, f, cov = flat(lp, old, ref, advantages, frozen)
    w = np.exp(l - b)
    plain, clipped = -a * w, -a * np.clip(w, 0.8, 1.2)
    dropped = (cov > o["clip_cov_low"]) & (cov < o["clip_cov_high"]) & ~(clipped > plain)
    assert 0 < dropped.sum() <= max(1, int(o["clip_cov_share"] * len(l))), (cov, dropped)
    return (np.maximum(plain, clipped) * ~dropped + o["beta"] * kl3(r, l)).mean()


def kl_cov(o, lp, old, ref, advantages, frozen, items):
    l, b, r, a, f, cov = flat(lp, old, ref, advantages, frozen)
    largest = np.argsort(-cov)[:max(1, int(o["kl_cov_share"] * len(l)))]
    penalised = np.isin(np.arange(len(l)), largest)
    return (-a * np.exp(l - b) + o["kl_cov_coefficient"] * np.abs(l - b) * penalised + o["beta"] * kl3(r, l)).mean()


def gpg(o, lp, old, ref, advantages, frozen, items):
    l, b, r, a, f, cov = flat(lp, old, ref, advantages, frozen)
    return (-a * l + o["beta"] * kl3(r, l)).mean()


def rloo(o, lp, old, ref, advantages, frozen, items):
    """The ratio of whole sequences, clipped; no KL, which TRL's RLOO has in its rewards."""
    total = 0
    for l, b, a in zip(lp, old, advantages):
        w = np.exp((l - b).sum())
        total -= min(w * a, np.clip(w, 0.8, 1.2) * a)
    return total / len(lp)


def online(o, lp, old, ref, advantages, frozen, items):
    """All ordered pairs of the samples of one prompt; their rewards are the numbers called advantages."""
    d = [(l - r).mean() if o["online_dpo_average"] else (l - r).sum() for l, r in zip(lp, ref)]
    margins = np.array([d[i] - d[j] for i, a in enumerate(advantages) for j, b in enumerate(advantages) if a > b])
    if o["loss_type"] == "online_ipo":
        return ((margins - 1 / (2 * o["beta"])) ** 2).mean()
    return softplus(-o["beta"] * margins).mean()


def bounded(o, lp, old, ref, advantages, frozen, items):
    """verl's ppo with dual clip and clamped logarithms, or ChatLearn's largest loss of a token; the KL by estimator."""
    l, b, r, a, f, cov = flat(lp, old, ref, advantages, frozen)
    x, d = np.clip(l - b, o.get("log_ratio_min", -np.inf), o.get("log_ratio_max", np.inf)), r - l
    w, limit = np.exp(x), o.get("kl_loss_log_ratio_limit", np.inf)
    tokens = np.maximum(-a * w, -a * np.clip(w, 0.8, 1.2))
    tokens = np.where(a < 0, np.minimum(tokens, -a * o.get("delta", np.inf)), tokens)
    tokens = np.minimum(tokens, o.get("token_loss_limit", np.inf))
    k3 = np.minimum(np.exp(np.clip(d, -limit, limit)) - np.clip(d, -limit, limit) - 1, o.get("kl_loss_limit", np.inf))
    # With "+" the gradient is that of k2, so that a perturbation is seen in k2 alone.
    e = r - f
    plus = d ** 2 / 2 - e ** 2 / 2
    kl = {"k1": -d, "k2": d ** 2 / 2, "k3": k3, "k1+": plus - e, "k3+": plus + np.exp(e) - e - 1}
    return (tokens + o["beta"] * kl[o.get("kl_loss_estimator", "k3")]).mean()


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
    "gmpo_tiny": (OWN, [("gmpo", gmpo, plain("gmpo") | {"epsilon_high": 0.28}, BETAS)]),
    "covariance_tiny": (OWN, [
        ("clip_cov", clip_cov, plain("clip_cov") | {"clip_cov_share": 0.25, "clip_cov_low": 0.15, "clip_cov_high": 0.6},
         BETAS),
        ("kl_cov", kl_cov, plain("kl_cov") | {"kl_cov_share": 0.25, "kl_cov_coefficient": 0.7}, BETAS)]),
    "gpg_tiny": (OWN, [("gpg", gpg, plain("gpg"), BETAS)]),
    "rloo_loss_tiny": (OWN, [("rloo", rloo, plain("grpo", "sequence_sum"), (0.0,))]),
    "online_dpo_tiny": (OWN, [
        ("online_dpo", online, {"loss_type": "online_dpo", "online_dpo_average": False}, (0.3,)),
        ("online_dpo_average", online, {"loss_type": "online_dpo", "online_dpo_average": True}, (0.3,)),
        ("online_ipo", online, {"loss_type": "online_ipo", "online_dpo_average": False}, (0.3,))]),
    "bounded_tiny": (OWN, [
        *((name, bounded, plain("ppo") | {"kl_loss_estimator": name}, (0.3,))
          for name in ("k1", "k2", "k3", "k1+", "k3+")),
        ("verl", bounded, plain("ppo") | {"delta": 1.25, "log_ratio_min": -0.25, "log_ratio_max": 0.25,
                                          "kl_loss_log_ratio_limit": 0.3, "kl_loss_limit": 0.05}, (0.3,)),
        ("chatlearn", bounded, plain("ppo") | {"log_ratio_max": 0.1, "token_loss_limit": 0.65}, (0.0,))]),
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
