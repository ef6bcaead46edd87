"""The part of make_small.py for losses with files of their own; none of them draws from another's random numbers.

DFT (Wu et al. 2025), APO-zero on marked answers (D'Oosterlinck et al. 2024), AOT (Melnyk et al. 2024), the likelihood
that TRL's DPOTrainer calls "sft", WPO's weights, DeepSpeed-Chat's loss of reward models, and that of process
reward models.
"""

import numpy as np

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


def log_collision(p, row, prompt):
    """log of the sum of squared probabilities at each of the answer's tokens."""
    logits = (sm.hidden_states(p, row)[:-1] @ p[sm.EMBEDDING].T)[prompt - 1:]
    table = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return np.log((np.exp(table) ** 2).sum(-1))


def weighted_pairs(write):
    """WPO (Zhou et al. 2024, equation 2; TRL's use_weighting): a pair's loss times its weight, which is a constant."""
    beta, tokens, made = 0.5, drawer(np.random.default_rng(56)), {}
    batches = [pairs(tokens) for _ in range(2)]
    logistic = lambda margin: softplus(-beta * margin)
    squared = lambda margin: (margin - 1 / (2 * beta)) ** 2
    for name, mean, pair_loss in (("sigmoid", False, logistic), ("ipo", True, squared)):
        p, reference, steps = sm.random_parameters(1), sm.random_parameters(1), []
        optimizer = sm.AdamW(p)
        for rows, _ in batches:
            lengths = np.array([len(r) - n for r, n in rows])
            sums = lambda q: np.array([completion_sum(q, r, n) for r, n in rows]) / (lengths if mean else 1)
            aligned = np.array([completion_sum(p, r, n) - log_collision(p, r, n).sum() for r, n in rows]) / lengths
            weights, start = np.exp(np.add(*np.split(aligned, 2))), sums(reference)
            loss = lambda q: (weights * pair_loss(np.subtract(*np.split(sums(q) - start, 2)))).mean()
            steps.append({"loss": float(loss(p)), "grad_norm": optimizer.step(sm.gradient(loss, p), 3e-2), "lr": 3e-2})
        made[f"{name}|use_weighting"] = {"over": {"loss_type": name, "use_weighting": True}, "steps": steps,
                                         "final": {"params": sm.summary(p)}}
    write("dpo_weighted_tiny", {"batches": [b for _, b in batches], "variants": made}, "trl.DPOTrainer",
          {"beta": beta, "loss_type": "per variant", "max_grad_norm": 1.0})


def with_score_head(seed):
    head = np.random.default_rng(seed).standard_normal((1, 8)).astype(np.float32).astype(np.float64)
    return sm.random_parameters(1) | {"score.weight": head}


def region_loss(chosen, rejected, scores):
    """DeepSpeed-Chat's reward_model.py for one pair: both rows are padded to one length, and each token is compared
    from the first difference to the longer row's end; equal rows are compared at their last token."""
    width = max(len(chosen), len(rejected))
    c, r = (padded([row], PAD, width)[0] for row in (chosen, rejected))
    begin = next((t for t in range(width) if c[t] != r[t]), width - 1)
    return softplus(-(scores(c) - scores(r))[begin:]).mean()


def divergence_region(write):
    """Answers that differ at once and later, of which either is the longer; one that begins the other; equal ones."""
    p, steps, tokens = with_score_head(58), [], drawer(np.random.default_rng(57))
    head, optimizer = p["score.weight"][0].tolist(), sm.AdamW(p)
    scores = lambda q: lambda row: sm.hidden_states(q, row) @ q["score.weight"][0]
    first, second, third, fourth = ([1] + tokens(n) for n in (3, 5, 6, 4))
    for made in ([(first + tokens(4), first + tokens(2)), (second + [5] + tokens(1), second + [6] + tokens(4))],
                 [(third, third[:4]), (fourth, list(fourth)), (first[:2], first[:2] + tokens(3))]):
        loss = lambda q: np.mean([region_loss(c, r, scores(q)) for c, r in made])
        rows = [c for c, _ in made] + [r for _, r in made]
        c, r = np.split(np.array([scores(p)(row)[-1] for row in rows]), 2)
        metrics = {"accuracy": float((c > r).mean()), "margin": float((c - r).mean()),
                   "mean_reward": float((c + r).mean() / 2)}
        batch = {"input_ids": padded(rows, PAD), "attention_mask": padded([[1] * len(row) for row in rows], 0)}
        steps.append({"micro": [{"batch": batch, "loss": float(loss(p))}], "lr": 1e-2, "metrics": metrics,
                      "grad_norm": optimizer.step(sm.gradient(loss, p), 1e-2)})
    write("rm_divergence_region_tiny", {"head_weight": head, "steps": steps, "final": {"params": sm.summary(p)}},
          "own scored pairs", {"loss_type": "divergence_region", "max_grad_norm": 1.0})


def labelled_steps(write):
    """Process reward models (Lightman et al. 2023): the mean negative log-likelihood of the labels at the steps' ends,
    over all steps of the update, as TRL's PRMTrainer has it of the difference of its two logits."""
    p, steps, tokens = with_score_head(60), [], drawer(np.random.default_rng(59))
    head, optimizer = p["score.weight"][0].tolist(), sm.AdamW(p)
    for answers in ([([2, 3, 1], [1, 1, 0]), ([4], [0])], [([1, 1], [0, 1]), ([3, 2], [1, 0])]):
        rows, labels = [], []
        for lengths, right in answers:
            row = [1] + tokens(2)
            marks = [-100] * len(row)
            for length, mark in zip(lengths, right):
                row, marks = row + tokens(length), marks + [-100] * (length - 1) + [mark]
            rows.append(row)
            labels.append(marks)
        def loss(q):
            nats = [softplus(-s if mark else s) for row, marks in zip(rows, labels)
                    for s, mark in zip(sm.hidden_states(q, row) @ q["score.weight"][0], marks) if mark != -100]
            return np.mean(nats)
        batch = {"input_ids": padded(rows, PAD), "labels": padded(labels, -100),
                 "attention_mask": padded([[1] * len(row) for row in rows], 0)}
        steps.append({"micro": [{"batch": batch, "loss": float(loss(p))}], "lr": 1e-2,
                      "grad_norm": optimizer.step(sm.gradient(loss, p), 1e-2)})
    write("labelled_steps_tiny", {"head_weight": head, "steps": steps, "final": {"params": sm.summary(p)}},
          "own labelled steps", {"loss_type": "step_logistic", "max_grad_norm": 1.0})


def all_of(write):
    dft(write)
    apo_zero_unpaired(write)
    dpo_of_batches(write)
    weighted_pairs(write)
    divergence_region(write)
    labelled_steps(write)
