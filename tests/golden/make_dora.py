"""Writes tests/golden/dora.json: of tiny models with DoRA's adapters logits, and the adapters' gradients, in NumPy with
float64, by the formulas of Liu et al. 2024 (arXiv 2402.09353) and PEFT's convention: y = m / |W + s B A| * (W x +
s B A x) + bias, where |.| is the length of each row of a matrix and a constant in the gradient.

Weights follow the formula of make_families.py, which the test repeats; values of A and B are half of it, lengths 1 and
half of it. Gradients are central differences in which the lengths |W + s B A| stay as they are.

Made with Python 3.11 and NumPy 2.4: python tests/golden/make_dora.py
"""

import json
import pathlib

import numpy as np

import family_cases

CASES = {
    "all layers": (family_cases.BASE | family_cases.LLAMA, {"rank": 2, "alpha": 3, "targets": ["all-linear"]}),
    "some layers, with biases": (family_cases.BASE | family_cases.QWEN2, {
        "rank": 4, "alpha": 3, "rslora": True, "targets": ["q_proj", "up_proj", "down_proj"]}),
}
IDS = [(7 * i * i + 3 * i) % 23 for i in range(14)]
STEP = 1e-4


def wave(name, *sizes):
    i = np.arange(np.prod(sizes), dtype=np.float64)
    values = 0.4 * np.sin(0.7311 * i + sum(name.encode()))
    return (1 + values / 4 if name.endswith("norm.weight") else values).reshape(sizes)


def rounded(values):
    return values.astype(np.float32).astype(np.float64)


class Model:
    """A Llama, or a Qwen2, which has biases of queries, keys and values."""

    def __init__(self, config, lora):
        self.config, self.lora, self.adapters, self.lengths = config, lora, {}, {}
        self.scale = lora["alpha"] / (lora["rank"] ** 0.5 if lora.get("rslora") else lora["rank"])

    def weight(self, name, *sizes):
        return rounded(wave(name, *sizes))

    def layer(self, name, x, out, bias=False):
        weight = self.weight(name + ".weight", out, x.shape[-1])
        targets, start = self.lora["targets"], f"base_model.model.{name}.lora_"
        y = x @ weight.T
        if targets == ["all-linear"] or name.rpartition(".")[2] in targets:
            if start + "A.weight" not in self.adapters:
                shapes = {"A.weight": (self.lora["rank"], x.shape[-1]), "B.weight": (out, self.lora["rank"])}
                self.adapters |= {start + end: rounded(wave(start + end, *sizes) / 2) for end, sizes in shapes.items()}
                end = "magnitude_vector"
                self.adapters[start + end] = rounded(1 + wave(start + end, out) / 2)
            a, b, m = (self.adapters[start + end] for end in ("A.weight", "B.weight", "magnitude_vector"))
            if name not in self.lengths:
                self.lengths[name] = np.linalg.norm(weight + self.scale * b @ a, axis=1)
            y = m / self.lengths[name] * (y + self.scale * (x @ a.T) @ b.T)
        return y + self.weight(name + ".bias", out) if bias else y

    def norm(self, name, x):
        return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + self.config["rms_norm_eps"]) * self.weight(
            name + ".weight", x.shape[-1])

    def turned(self, x):
        width = x.shape[-1]
        angles = np.outer(np.arange(len(x)), self.config["rope_theta"] ** (-np.arange(0, width, 2) / width))
        angles = np.concatenate([angles, angles], -1)[:, None]
        half = np.concatenate([-x[..., width // 2 :], x[..., : width // 2]], -1)
        return x * np.cos(angles) + half * np.sin(angles)

    def attention(self, name, x):
        heads, pairs, width = (self.config[k] for k in ("num_attention_heads", "num_key_value_heads", "head_dim"))
        bias = self.config["model_type"] == "qwen2"
        q, k, v = (self.layer(f"{name}.{which}_proj", x, n * width, bias).reshape(len(x), n, width)
                   for which, n in (("q", heads), ("k", pairs), ("v", pairs)))
        q, k = self.turned(q), np.repeat(self.turned(k), heads // pairs, 1)
        scores = np.einsum("qhw,khw->hqk", q, k) / width**0.5
        scores = np.where(np.tril(np.ones((len(x), len(x)))) > 0, scores, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        read = np.einsum("hqk,khw->qhw", shares, np.repeat(v, heads // pairs, 1)).reshape(len(x), -1)
        return self.layer(f"{name}.o_proj", read, x.shape[-1])

    def logits(self):
        hidden, inner = self.config["hidden_size"], self.config["intermediate_size"]
        x = self.weight("model.embed_tokens.weight", self.config["vocab_size"], hidden)[IDS]
        for i in range(self.config["num_hidden_layers"]):
            name = f"model.layers.{i}"
            x = x + self.attention(name + ".self_attn", self.norm(name + ".input_layernorm", x))
            y = self.norm(name + ".post_attention_layernorm", x)
            gate = self.layer(name + ".mlp.gate_proj", y, inner)
            y = gate / (1 + np.exp(-gate)) * self.layer(name + ".mlp.up_proj", y, inner)
            x = x + self.layer(name + ".mlp.down_proj", y, hidden)
        x = self.norm("model.norm", x)
        return x @ self.weight("lm_head.weight", self.config["vocab_size"], hidden).T

    def loss(self):
        """The sum over t of sin(0.7 t) log p of token (11 t + 3) mod 23."""
        logits = self.logits()
        log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        t = np.arange(len(IDS))
        return float(np.sum(np.sin(0.7 * t) * log_probs[t, (11 * t + 3) % 23]))

    def gradient(self, name):
        values, slopes = self.adapters[name], []
        for at in np.ndindex(values.shape):
            own, sides = values[at], []
            for side in (STEP, -STEP):
                values[at] = own + side
                sides.append(self.loss())
            values[at] = own
            slopes.append((sides[0] - sides[1]) / (2 * STEP))
        return slopes


def case(name, config, lora):
    model = Model(config, lora)
    logits = model.logits()
    gradients = {key: [float(f"{g:.7g}") for g in model.gradient(key)] for key in sorted(model.adapters)}
    return {"name": name, "config": config, "lora": lora, "ids": IDS,
            "logits": [round(x, 7) for x in logits.flatten().tolist()], "gradients": gradients}


if __name__ == "__main__":
    path = pathlib.Path(__file__).parent / "dora.json"
    path.write_text(json.dumps([case(name, *of) for name, of in CASES.items()], separators=(",", ":")) + "\n")
    print(f"{path}: {len(CASES)} cases")
