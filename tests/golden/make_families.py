"""Writes tests/golden/families.json: of tiny models of each family and kind of RoPE logits, log-probs, greedy tokens,
losses, gradients and the errors of bf16 by Hugging Face transformers, an implementation that is not ours. Weights
follow a formula that the test repeats, so that none are kept.

Made with Python 3.11, torch 2.11.0 (from StableLM to GLM-4.5, and training in bf16 of cases up to there, 2.15.0) and
transformers 5.23.0: python tests/golden/make_families.py

Cases that the file has with the same config stay as they are: another processor gives other last digits. What they lack
is added.
"""

import copy
import json
import pathlib
import types

import torch
import transformers

from family_cases import CASES

IDS = [(7 * i * i + 3 * i) % 23 for i in range(40)]
PROMPT, DRAWN = 20, 12  # tokens; LongRoPE of transformers has one kind of factors in all of these
BALANCE, Z = 0.05, 0.02  # weights of the routers' losses


def weights(name, tensor):
    """0.4·sin(0.7311·i + the sum of the name's bytes); norms' weights 1 + a quarter of it."""
    i = torch.arange(tensor.numel(), dtype=torch.float64)
    values = 0.4 * torch.sin(0.7311 * i + sum(name.encode()))
    if name.endswith("norm.weight"):
        values = 1 + values / 4
    return values.reshape(tensor.shape).float()


class Qwen(torch.nn.Module):
    """Qwen 1 by its published definition: transformers has no class for it."""

    def __init__(self, config):
        super().__init__()
        nn, hidden, inner = torch.nn, config["hidden_size"], config["intermediate_size"] // 2
        norm = lambda: nn.RMSNorm(hidden, config["layer_norm_epsilon"])
        linear = lambda width, out: nn.Linear(width, out, bias=False)
        block = lambda: nn.ModuleDict({
            "ln_1": norm(), "ln_2": norm(),
            "attn": nn.ModuleDict({"c_attn": nn.Linear(hidden, 3 * hidden), "c_proj": linear(hidden, hidden)}),
            "mlp": nn.ModuleDict({"w1": linear(hidden, inner), "w2": linear(hidden, inner),
                                  "c_proj": linear(inner, hidden)})})
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(config["vocab_size"], hidden), "ln_f": norm(),
            "h": nn.ModuleList(block() for _ in range(config["num_hidden_layers"]))})
        self.lm_head = linear(hidden, config["vocab_size"])
        self.heads, self.base, self.config = config["num_attention_heads"], config["rotary_emb_base"], None

    def turned(self, x):
        width = x.shape[-1]
        angles = torch.outer(torch.arange(x.shape[-2]), self.base ** (-torch.arange(0, width, 2) / width))
        cos, sin = (f(torch.cat([angles, angles], -1)).to(x.dtype) for f in (torch.cos, torch.sin))
        return x * cos + torch.cat([-x[..., width // 2 :], x[..., : width // 2]], -1) * sin

    def forward(self, ids, use_cache):
        x = self.transformer.wte(ids)
        for block in self.transformer.h:
            q, k, v = block.attn.c_attn(block.ln_1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            read = torch.nn.functional.scaled_dot_product_attention(self.turned(q), self.turned(k), v, is_causal=True)
            x = x + block.attn.c_proj(read.transpose(1, 2).flatten(-2))
            y = block.ln_2(x)
            x = x + block.mlp.c_proj(torch.nn.functional.silu(block.mlp.w2(y)) * block.mlp.w1(y))
        return types.SimpleNamespace(logits=self.lm_head(self.transformer.ln_f(x)))


def name_in_file(name, config):
    """Published files call some parameters otherwise; transformers renames them as it loads."""
    if config["model_type"] == "gpt_neox" and name == "lm_head.weight":
        return "embed_out.weight"
    if config["model_type"].startswith("granitemoe"):
        return name.replace("router.weight", "router.layer.weight")
    return name.replace(".mlp.", ".block_sparse_moe.") if config["model_type"] == "mixtral" else name


def stacked_pieces(name, parameter):
    """Gives of gpt-oss, whose files have all experts together, each one's [out, in] by the name of our parameter."""
    start, _, of = name.rpartition(".")
    if of.endswith("_bias"):
        return [(f"{start}.{e}.{of.removesuffix('_bias')}.bias", each) for e, each in enumerate(parameter)]
    return [(f"{start}.{e}.{of}.weight", each.T) for e, each in enumerate(parameter)]


def pieces_in_file(name, parameter, config):
    """The tensors of a file that make a parameter: (name, where they are in it). Experts have one each there."""
    at = name_in_file(name, config)
    if config["model_type"] == "gpt2" and ".h." in name and parameter.ndim == 2:
        return [(at, parameter.T)]  # the formula counts [out, in], the files have [in, out]
    if config["model_type"] == "gpt_oss" and ".experts." in name:
        return stacked_pieces(at, parameter)
    if config["model_type"].startswith("granitemoe") and ".experts." in name:
        start, _, of = at.rpartition(".")
        ours = {"gate_up_proj": "input_linear", "down_proj": "output_linear"}[of]
        return [(f"{start}.{e}.{ours}.weight", each) for e, each in enumerate(parameter)]
    if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
        return [(at, parameter)]
    at = at.rpartition(".")[0]
    gate, up, down = ("w1", "w3", "w2") if config["model_type"] == "mixtral" else ("gate_proj", "up_proj", "down_proj")
    if name.endswith("down_proj"):
        return [(f"{at}.{e}.{down}.weight", parameter[e]) for e in range(len(parameter))]
    half = parameter.shape[1] // 2
    return [(f"{at}.{e}.{which}.weight", parameter[e, first : first + half])
            for e in range(len(parameter)) for which, first in ((gate, 0), (up, half))]


def model_of(config):
    if config["model_type"] == "qwen":
        model = Qwen(config)
    else:
        kind = getattr(transformers, config["architectures"][0])
        model = kind(kind.config_class(**copy.deepcopy(config))).eval()  # which changes what it is given
        model.get_input_embeddings().padding_idx = None  # whose row would have no gradient
        model.set_experts_implementation("eager")  # the others do not compute in float64
    corrections = [(name, values) for name, values in model.named_buffers() if name.endswith("correction_bias")]
    with torch.no_grad():
        for name, parameter in list(model.named_parameters()) + corrections:
            for in_file, piece in pieces_in_file(name, parameter, config):
                piece.copy_(weights(in_file, piece))
    return model


def logits_of(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0]


def greedy(model):
    """At most DRAWN tokens: those ahead of one that is as likely as another but for rounding."""
    ids = IDS[:PROMPT]
    while len(ids) < PROMPT + DRAWN:
        (best, second), (token, _) = (of.tolist() for of in logits_of(model, ids)[-1].topk(2))
        if best - second < 3e-4:
            break
        ids = ids + [token]
    return ids[PROMPT:]


def gradients(model, config):
    """Gives of each tensor of the file (its name, its gradient)."""
    return [(in_file, piece) for name, parameter in model.named_parameters()
            for in_file, piece in pieces_in_file(name, parameter.grad, config)]


def probes(model, config):
    """Gives of each gradient its norm and its product with a wave of the same size."""
    return {name: [float(f"{x:.7g}") for x in (of.norm(), (of * weights("probe " + name, of)).sum())]
            for name, of in gradients(model, config)}


def losses(model):
    """Log-probs of the text, the loss that is their mean and that of routers, and leaves the gradients of its sum."""
    ids = torch.tensor([IDS])
    routed = hasattr(model.config, "router_aux_loss_coef")  # of others transformers gives no such loss
    out = model(ids, use_cache=False, **({"output_router_logits": True} if routed else {}))
    logits = out.logits[0, :-1] if out.logits.dtype == torch.float64 else out.logits[0, :-1].float()
    log_probs = logits.log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
    loss = -log_probs.mean()
    result = {"log_probs": log_probs.tolist(), "nll": loss.item()}
    if routed:
        # Zoph et al. 2022, equation 5; the mean over all routers as in transformers' other loss.
        z = torch.cat([logits.logsumexp(-1).square() for logits in out.router_logits]).mean()
        loss = loss + BALANCE * out.aux_loss + Z * z
        result["routers"] = {"balance": BALANCE, "z": Z, "aux_loss": out.aux_loss.item(), "z_loss": z.item()}
    loss.backward()
    return result


def training(model, config):
    """In float64: gradients of float32 are sums that lose a ten-thousandth where their terms cancel."""
    result = losses(model)
    result["log_probs"] = [round(x, 7) for x in result["log_probs"]]
    return result | {"gradients": probes(model, config)}


def rounded_models(config):
    """transformers in bf16, and float64 with weights that bf16 has: all, or those of linear layers and tables alone."""
    yield model_of(config).to(torch.bfloat16)
    for least in (1, 2):
        model = model_of(config).double()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim >= least:
                    parameter.copy_(parameter.to(torch.bfloat16))
        yield model


def training_in_bf16(config):
    """How far rounding to bf16 takes log-probs and gradients from those in float64: of log-probs the largest difference
    and the mean, of each gradient the norm of the difference. Of the models above the largest, as errors of one may
    cancel."""
    exact = model_of(config).double()
    wanted = torch.tensor(losses(exact)["log_probs"], dtype=torch.float64)
    log_probs, errors = [0.0, 0.0], dict.fromkeys(dict(gradients(exact, config)), 0.0)
    for model in rounded_models(config):
        difference = (torch.tensor(losses(model)["log_probs"], dtype=torch.float64) - wanted).abs()
        log_probs = [max(a, b.item()) for a, b in zip(log_probs, (difference.max(), difference.mean()))]
        for (name, a), (_, b) in zip(gradients(model, config), gradients(exact, config)):
            errors[name] = max(errors[name], (a.double() - b).norm().item())
    return {"log_probs": [float(f"{x:.4g}") for x in log_probs],
            "gradients": {name: float(f"{x:.4g}") for name, x in errors.items()}}


def rounding(config):
    """How far logits are from those in float64 by type: the largest difference, and the mean. Angles and norms of
    transformers are of fp32 in float64 too, which is nothing beside bf16."""
    exact = logits_of(model_of(config).double(), IDS)
    differences = lambda kind: (logits_of(model_of(config).to(kind), IDS).double() - exact).abs()
    return {str(kind).removeprefix("torch."): [float(f"{x:.4g}") for x in (of.max(), of.mean())]
            for kind in (torch.float32, torch.bfloat16) for of in (differences(kind),)}


def case(name, config):
    model = model_of(config)
    return {"name": name, "config": config, "ids": IDS,
            "logits": [round(x, 6) for x in logits_of(model, IDS).flatten().tolist()],
            "greedy": greedy(model), **training(model.double(), config), "rounding": rounding(config)}


if __name__ == "__main__":
    path = pathlib.Path(__file__).parent / "families.json"
    kept = {one["name"]: one for one in json.loads(path.read_text())}
    cases = [kept[name] if name in kept and kept[name]["config"] == config else case(name, config)
             for name, config in CASES.items()]
    for one in cases:
        if "training_in_bf16" not in one:
            one["training_in_bf16"] = training_in_bf16(one["config"])
    path.write_text(json.dumps(cases, separators=(",", ":")) + "\n")
    print(f"{path}: {len(cases)} cases, {path.stat().st_size} bytes")
