"""Writes tests/golden/mixtures.json: of tiny mixtures of experts with the weights of make_families.py the greedy
tokens, log-probs, losses and gradients by Hugging Face transformers.

Made with Python 3.11, torch 2.11.0 and transformers 5.23.0: python tests/golden/make_mixtures.py
"""

import json
import pathlib

import torch

from make_families import (BASE, DEEPSEEK_V2, DEEPSEEK_V3, DEEPSEEK_YARN, DOTS1, IDS, MIXTRAL, MOONLIGHT, QWEN2_MOE,
                           QWEN2_MOE_WINDOWS, QWEN3_MOE, model_of, pieces_in_file, weights)

BALANCE, Z = 0.05, 0.02  # weights of the routers' losses
CASES = {
    "mixtral": BASE | MIXTRAL,
    "qwen2_moe": BASE | QWEN2_MOE | {"mlp_only_layers": [0]},
    "qwen2_moe, windows": BASE | QWEN2_MOE_WINDOWS | {"max_window_layers": 3},
    "qwen3_moe": BASE | QWEN3_MOE,
    "dots1": BASE | DOTS1,
    "deepseek_v2": BASE | DEEPSEEK_V2,
    "deepseek_v3": BASE | DEEPSEEK_V3 | DEEPSEEK_YARN,
    "moonlight": BASE | MOONLIGHT,
}


def greedy(model, prompt, count):
    ids = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            ids.append(int(model(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
    return ids[len(prompt):]


def case(name, config):
    model = model_of(config)
    ids = torch.tensor([IDS])
    routed = hasattr(model.config, "router_aux_loss_coef")  # of others transformers gives no such loss
    out = model(ids, use_cache=False, **({"output_router_logits": True} if routed else {}))
    log_probs = out.logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
    loss = -log_probs.mean()
    result = {"name": name, "config": config, "ids": IDS, "greedy": greedy(model, IDS[:10], 12),
              "log_probs": [round(x, 7) for x in log_probs.tolist()], "nll": loss.item()}
    if routed:
        # Zoph et al. 2022, equation 5; the mean over all routers as in transformers' other loss.
        z = torch.cat([logits.logsumexp(-1).square() for logits in out.router_logits]).mean()
        loss = loss + BALANCE * out.aux_loss + Z * z
        result |= {"aux_loss": out.aux_loss.item(), "z_loss": z.item()}
    loss.backward()
    # Of each tensor of the file the gradient's norm and its product with a wave of the same size.
    result["gradients"] = {
        in_file: [piece.norm().item(), (piece * weights("probe " + in_file, piece)).sum().item()]
        for parameter_name, parameter in model.named_parameters()
        for in_file, piece in pieces_in_file(parameter_name, parameter.grad, config)}
    return result


if __name__ == "__main__":
    cases = [case(name, config) for name, config in CASES.items()]
    path = pathlib.Path(__file__).parent / "mixtures.json"
    path.write_text(json.dumps({"balance": BALANCE, "z": Z, "cases": cases}, separators=(",", ":")) + "\n")
    print(f"{path}: {len(cases)} cases, {path.stat().st_size} bytes")
