"""Writes tests/golden/small/: small goldens of every shape that collimate-goldens replays, and their models.

Formulas from the papers and TRL's documentation; numbers in float64 numpy, gradients by central differences.
Made with Python 3.11.7 and numpy 2.4.6: python tests/golden/make_small.py [NAME...]. With names only those files are
written: another machine's numpy changes last digits of the others.
"""

import json
import pathlib
import sys

import numpy as np

import small_distillation
import small_gpt2
import small_grpo
import small_losses
import small_model as sm
import small_policies
import small_ppo
import small_steps
from small_rows import PAD, completion_sum, drawer, padded, pairs, sigmoid, softplus

HERE = pathlib.Path(__file__).parent / "small"
RNG = np.random.default_rng(5)
tokens = drawer(RNG)


def chosen(name):
    return len(sys.argv) == 1 or name in sys.argv[1:]


def write(name, content, trainer, hyper):
    if not chosen(name):
        return
    head = {"golden": name, "trainer": trainer, "versions": {"numpy": np.__version__},
            "hyper": {"model": "tiny", "pad": PAD} | hyper}
    (HERE / f"{name}.json").write_text(json.dumps(head | content, separators=(",", ":")))
    print(name, flush=True)


def dpo_losses(beta):
    """Losses of log-ratios c, r of pairs and their lengths k, l: name -> (options, function).

    These are what the file has of trl.DPOTrainer. Another variant has a file of its own, made by small_losses.py.
    """
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
                                   lambda c, r, k, l: logistic(np.exp(-r) - np.exp(-c))),
            # Wang et al. 2024: log(2u / (1 + u)) of the ratio u = e^c, and u's power with α = 0.5.
            "sigmoid+js_divergence": ({"f_divergence_type": "js_divergence"},
                                      lambda c, r, k, l: logistic(softplus(-r) - softplus(-c))),
            "sigmoid+alpha_divergence": ({"f_divergence_type": "alpha_divergence", "f_alpha_divergence_coef": 0.5},
                                         lambda c, r, k, l: logistic(2 * (np.exp(-r / 2) - np.exp(-c / 2))))}


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


def cpo_losses(beta, alpha):
    """Xu et al. 2024 and its variants by a hinge and by IPO's square (on means): by TRL's name."""
    sums = lambda p, rows: np.array([completion_sum(p, r, n) for r, n in rows])
    return {kind: lambda p, chosen, rejected, of=of, read=read: of(read(p, chosen) - read(p, rejected)).mean()
            + alpha * likelihood_loss(p, chosen, False)
            for kind, of, read in (("sigmoid", lambda m: softplus(-beta * m), sums),
                                   ("hinge", lambda m: np.maximum(0.0, 1 - beta * m), sums),
                                   ("ipo", lambda m: (m - 1 / (2 * beta)) ** 2, answer_means))}


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


def continuation(model, p, prompt, count=20):
    """The most likely tokens after a prompt, their logits, the first logits, and the least lead over another token."""
    ids, tops, lead, first = list(prompt), [], np.inf, None
    for _ in range(count):
        logits = model.hidden_states(p, ids)[-1] @ p[model.EMBEDDING].T
        first = logits if first is None else first
        second, top = np.sort(logits)[-2:]
        ids.append(int(logits.argmax()))
        tops.append(float(top))
        lead = min(lead, top - second)
    return {"prompt_ids": prompt, "greedy_ids": ids[len(prompt):], "greedy_logits": tops,
            "next_logits_first8": first[:8].tolist()}, lead


def greedy(model, p):
    """Continuations of drawn prompts: those that rounding cannot change and that do not repeat one token."""
    out, tokens = [], drawer(np.random.default_rng(23))
    while len(out) < 3:
        one, lead = continuation(model, p, [1] + tokens(1 + 4 * len(out)))
        if lead > 1e-2 and len(set(one["greedy_ids"])) > 4:
            out.append(one)
    return out


def write_model(name, model):
    """A directory as Hugging Face has it, and what the model says."""
    if not chosen(name):
        return
    folder, p = HERE / "models" / name, model.random_parameters(1)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(model.CONFIG, indent=1) + "\n")
    sm.write_safetensors(folder / "model.safetensors", p)
    (folder / "greedy_reference.json").write_text(json.dumps(greedy(model, p), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    write_model("tiny", sm)
    write_model("tiny-gpt2", small_gpt2)
    write("sft_tiny", small_steps.sft(sm, tokens)[0], "trl.SFTTrainer", small_steps.SFT_HYPER)
    made = [pairs(tokens) for _ in range(2)]
    dpo(made)
    reward(made)
    small_policies.first_file(write, tokens, RNG)
    small_ppo.arrays(write)
    small_ppo.updates(write, tokens)
    without_reference("orpo_tiny", "trl.experimental.ORPOTrainer", {"beta": 0.3}, made, orpo_loss)
    without_reference("simpo_tiny", "trl.experimental.CPOTrainer",
                      {"loss_type": "simpo", "beta": 2.0, "simpo_gamma": 0.7, "cpo_alpha": 0.5}, made, simpo_loss)
    kto(made)
    small_steps.sft_of_family(write, "sft_gpt2_tiny", small_gpt2, "tiny-gpt2")
    small_steps.dpo(write)
    small_grpo.runs(write)
    small_grpo.padded_prompts(write, small_gpt2, "tiny-gpt2")
    for kind, loss in cpo_losses(0.4, 0.5).items():
        without_reference(f"cpo_{kind}_tiny", "trl.experimental.CPOTrainer",
                          {"loss_type": kind, "beta": 0.4, "cpo_alpha": 0.5}, made, loss)
    small_losses.all_of(write)
    small_distillation.all_of(write)
    small_policies.other_files(write)
