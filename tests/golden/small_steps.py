"""Training runs of several updates with accumulation: SFT and DPO (Rafailov et al. 2023)."""

import numpy as np

import small_model as sm
from small_rows import PAD, completion_sum, drawer, padded, pairs, softplus

SFT_HYPER = {"weight_decay": 0.1, "max_grad_norm": 1.0, "gradient_accumulation_steps": 2}


def sft(model, tokens):
    """Content of a golden of SFT, and the first rows and last parameters."""
    p = model.random_parameters(1)
    optimizer = sm.AdamW(p, decay=0.1)
    before, steps, seen = sm.summary(p), [], []
    for lr, micros in ((0.0, 1), (1e-2, 2), (5e-3, 1)):
        batches = [[([1] + tokens(5 + i), 2 + i) for i in range(2)] for _ in range(micros)]
        seen += batches
        items = sum(len(r) - n for b in batches for r, n in b)
        loss = lambda q, part: -sum(completion_sum(q, r, n, model) for r, n in part) / items
        grads = sm.gradient(lambda q: sum(loss(q, b) for b in batches), p)
        recorded = [{"batch": {"input_ids": padded([r for r, _ in b], PAD),
                               "labels": padded([[-100] * n + r[n:] for r, n in b], -100),
                               "attention_mask": padded([[1] * len(r) for r, _ in b], 0)},
                     "loss": loss(p, b), "num_items_in_batch": items} for b in batches]
        steps.append({"micro": recorded, "lr": lr, "grad_norm": optimizer.step(grads, lr)})
    return {"params_before": before, "steps": steps, "final": {"params": sm.summary(p)}}, seen[0], p


def sft_of_family(write, name, model, model_name):
    """SFT of another family's model, with the log-probs of the first rows' tokens at the end."""
    content, rows, p = sft(model, drawer(np.random.default_rng(21)))
    scored = [model.log_probs(p, r)[0].tolist() for r, _ in rows]
    content["final"]["logprobs_of_next_token_first_batch"] = padded(scored, 0.0)
    write(name, content, "trl.SFTTrainer", SFT_HYPER | {"model": model_name})


def dpo(write):
    """Every update is the mean of two micro-batches; rewards are β times the log-ratio to the initial model."""
    beta, p, reference, steps = 0.5, sm.random_parameters(1), sm.random_parameters(1), []
    tokens, optimizer = drawer(np.random.default_rng(22)), sm.AdamW(p, decay=0.05)
    for lr in (0.0, 1e-2, 5e-3, 2e-3):
        micros = [pairs(tokens) for _ in range(2)]
        start = [np.array([completion_sum(reference, r, n) for r, n in rows]) for rows, _ in micros]
        rewards = lambda q, m: np.split(
            beta * (np.array([completion_sum(q, r, n) for r, n in micros[m][0]]) - start[m]), 2)
        def loss(q, m):
            chosen, rejected = rewards(q, m)
            return softplus(rejected - chosen).mean()
        chosen, rejected = np.concatenate([rewards(p, m) for m in range(2)], axis=1)
        recorded = {"micro": [{"batch": batch, "loss": float(loss(p, m))} for m, (_, batch) in enumerate(micros)],
                    "metrics": {"rewards/chosen": chosen.mean(), "rewards/rejected": rejected.mean(),
                                "rewards/margins": (chosen - rejected).mean(),
                                "rewards/accuracies": (chosen > rejected).mean()}, "lr": lr}
        grads = sm.gradient(lambda q: (loss(q, 0) + loss(q, 1)) / 2, p)
        steps.append(recorded | {"grad_norm": optimizer.step(grads, lr)})
    write("dpo_tiny", {"steps": steps, "final": {"params": sm.summary(p)}}, "trl.DPOTrainer",
          {"beta": beta, "loss_type": ["sigmoid"], "ref": "same as the initial model", "weight_decay": 0.05,
           "max_grad_norm": 1.0, "gradient_accumulation_steps": 2})
