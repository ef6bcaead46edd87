"""The part of make_small.py for losses on a teacher's distributions.

Forward and reverse Kullback-Leibler divergence and the generalised Jensen-Shannon divergence of equation 1 of Agarwal
et al. 2023 (with its beta as TRL's GKDTrainer.generalized_jsd_loss has it), of whole vocabularies and of a list with
one outcome for the rest; the temperature's square of Hinton et al. 2015.
"""

import numpy as np

import small_model as sm
from small_rows import PAD, drawer, padded

TEACHER = 7  # the seed of its parameters


def distributions(p, row, prompt, temperature):
    """Log-probs [tokens of the answer, vocabulary]."""
    logits = (sm.hidden_states(p, row)[:-1] @ p[sm.EMBEDDING].T)[prompt - 1:] / temperature
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def outcomes(table, ids):
    """Log-probs of the listed tokens and of all others together; of none, e to the power of -80."""
    listed = np.take_along_axis(table, ids, -1)
    others = np.ones(table.shape, bool)
    np.put_along_axis(others, ids, False, -1)
    rest = np.where(others, np.exp(table), 0.0).sum(-1)
    return np.concatenate([listed, np.log(np.maximum(rest, np.exp(-80.0)))[:, None]], -1)


def divergence(student, teacher, beta):
    kl = lambda a, b: (np.exp(a) * (a - b)).sum()
    if beta in (0, 1):
        return kl(student, teacher) if beta else kl(teacher, student)
    mixture = np.log(beta * np.exp(teacher) + (1 - beta) * np.exp(student))
    return beta * kl(teacher, mixture) + (1 - beta) * kl(student, mixture)


def taught(write, name, beta, listed, hyper):
    temperature, weight = hyper.get("distillation_temperature", 1.0), hyper.get("data_loss_weight", 0.0)
    p, teacher, steps = sm.random_parameters(1), sm.random_parameters(TEACHER), []
    optimizer, tokens = sm.AdamW(p), drawer(np.random.default_rng(61))
    for lr, micros in ((1e-2, 2), (5e-3, 1)):
        batches = [[([1] + tokens(5 + i), 2 + i) for i in range(2)] for _ in range(micros)]
        items = sum(len(r) - n for b in batches for r, n in b)
        tables = {tuple(r): distributions(teacher, r, n, temperature) for b in batches for r, n in b}
        lists = {r: np.sort(np.argsort(-t, -1)[:, :listed], -1) for r, t in tables.items()}

        def loss(q, m):
            total = 0.0
            for r, n in batches[m]:
                ids = lists[tuple(r)]
                own, other = (outcomes(t, ids) for t in (distributions(q, r, n, temperature), tables[tuple(r)]))
                total += (1 - weight) * temperature**2 * divergence(own, other, beta)
                total -= weight * sm.log_probs(q, r)[0][n - 1:].sum()
            return total / items

        recorded = []
        for m, b in enumerate(batches):
            of_teacher = [outcomes(tables[tuple(r)], lists[tuple(r)]) for r, _ in b]
            recorded.append({"batch": {"input_ids": padded([r for r, _ in b], PAD),
                                       "labels": padded([[-100] * n + r[n:] for r, n in b], -100),
                                       "attention_mask": padded([[1] * len(r) for r, _ in b], 0),
                                       "teacher_ids": [lists[tuple(r)].tolist() for r, _ in b],
                                       "teacher_log_probs": [t[:, :-1].tolist() for t in of_teacher],
                                       "teacher_rest": [t[:, -1].tolist() for t in of_teacher]},
                             "loss": float(loss(p, m)), "num_items_in_batch": items})
        grads = sm.gradient(lambda q: sum(loss(q, m) for m in range(micros)), p)
        steps.append({"micro": recorded, "lr": lr, "grad_norm": optimizer.step(grads, lr)})
    write(name, {"steps": steps, "final": {"params": sm.summary(p)}}, "own taught completions",
          {"max_grad_norm": 1.0} | hyper)


def all_of(write):
    whole = sm.CONFIG["vocab_size"]
    taught(write, "distillation_forward_kl_tiny", 0, 4,
           {"loss_type": "forward_kl", "distillation_temperature": 1.5, "data_loss_weight": 0.3})
    taught(write, "distillation_reverse_kl_tiny", 1, 5, {"loss_type": "reverse_kl"})
    taught(write, "distillation_jsd_tiny", 0.3, whole, {"loss_type": "jsd", "jsd_beta": 0.3})
