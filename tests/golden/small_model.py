"""A decoder of the Llama family in numpy (float64), gradients by central differences, AdamW (Loshchilov and Hutter
2019): what make_small.py needs, sharing nothing with the program under test."""

import json
import struct

import numpy as np

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 16, "hidden_size": 8,
    "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "intermediate_size": 8,
    "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False, "bos_token_id": 1, "eos_token_id": 2,
    "torch_dtype": "float32",
}
EMBEDDING = "model.embed_tokens.weight"


def shapes():
    h, d, f = CONFIG["hidden_size"], CONFIG["head_dim"], CONFIG["intermediate_size"]
    q, kv = CONFIG["num_attention_heads"] * d, CONFIG["num_key_value_heads"] * d
    out = {EMBEDDING: (CONFIG["vocab_size"], h)}
    for i in range(CONFIG["num_hidden_layers"]):
        p = f"model.layers.{i}."
        out |= {p + "input_layernorm.weight": (h,), p + "self_attn.q_proj.weight": (q, h),
                p + "self_attn.k_proj.weight": (kv, h), p + "self_attn.v_proj.weight": (kv, h),
                p + "self_attn.o_proj.weight": (h, q), p + "post_attention_layernorm.weight": (h,),
                p + "mlp.gate_proj.weight": (f, h), p + "mlp.up_proj.weight": (f, h),
                 p + "mlp.down_proj.weight": (h, f)}
    return out | {"model.norm.weight": (h,)}


def is_norm_weight(name):
    """GPT-2's are ln_1, ln_2 and ln_f."""
    return name.endswith("norm.weight") or (".ln_" in name and name.endswith(".weight"))


def random_values(seed, sizes):
    """Makes parameters {name: shape}; norm weights lie around 1."""
    rng = np.random.default_rng(seed)
    values = {n: (1 if is_norm_weight(n) else 0) + 0.4 * rng.standard_normal(s) for n, s in sizes.items()}
    return {n: v.astype(np.float32).astype(np.float64) for n, v in values.items()}


def random_parameters(seed):
    return random_values(seed, shapes())


def write_safetensors(path, parameters):
    header, data = {}, b""
    for name, value in parameters.items():
        raw = value.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def rms(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + CONFIG["rms_norm_eps"]) * weight


def rotate(x):  # [T, heads, d]; halves are rotated against each other
    d = x.shape[-1]
    angles = np.arange(x.shape[0])[:, None] / CONFIG["rope_theta"] ** (np.arange(0, d, 2) / d)
    cos, sin = (np.concatenate([f(angles)] * 2, -1)[:, None, :] for f in (np.cos, np.sin))
    return x * cos + np.concatenate([-x[..., d // 2:], x[..., : d // 2]], -1) * sin


def attention(q, k, v):  # [T, heads, d] each -> [T, heads * d]
    length, _, d = q.shape
    scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(d)
    scores[:, np.triu(np.ones((length, length), bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("hqk,khd->qhd", weights, v).reshape(length, -1)


def hidden_states(p, ids):
    """States after the last norm [T, H] of one sequence."""
    heads, d, length = CONFIG["num_attention_heads"], CONFIG["head_dim"], len(ids)
    group = heads // CONFIG["num_key_value_heads"]
    x = p[EMBEDDING][ids]
    for i in range(CONFIG["num_hidden_layers"]):
        n = f"model.layers.{i}."
        y = rms(x, p[n + "input_layernorm.weight"])
        q, k, v = ((y @ p[n + f"self_attn.{c}_proj.weight"].T).reshape(length, -1, d) for c in "qkv")
        q, k, v = rotate(q), np.repeat(rotate(k), group, 1), np.repeat(v, group, 1)
        x = x + attention(q, k, v) @ p[n + "self_attn.o_proj.weight"].T
        y = rms(x, p[n + "post_attention_layernorm.weight"])
        gate = y @ p[n + "mlp.gate_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * (y @ p[n + "mlp.up_proj.weight"].T)) @ p[n + "mlp.down_proj.weight"].T
    return rms(x, p["model.norm.weight"])


def log_probs(p, ids, temperature=1.0):
    """log p(ids[t + 1] | ids[: t + 1]) [T - 1] and the entropies of those distributions."""
    return log_probs_of_next(hidden_states(p, ids)[:-1] @ p[EMBEDDING].T / temperature, ids)


def log_probs_of_next(logits, ids):
    logits = logits - logits.max(-1, keepdims=True)
    table = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return table[np.arange(len(ids) - 1), ids[1:]], -(np.exp(table) * table).sum(-1)


def gradient(loss, p, step=1e-5):
    """Central differences of a scalar function of the parameters."""
    out = {}
    for name, value in p.items():
        flat, grad = value.reshape(-1), np.zeros(value.size)
        for i in range(value.size):
            kept = flat[i]
            flat[i] = kept + step
            above = loss(p)
            flat[i] = kept - step
            grad[i] = (above - loss(p)) / (2 * step)
            flat[i] = kept
        out[name] = grad.reshape(value.shape)
    return out


def norm(grads):
    return float(np.sqrt(sum((g * g).sum() for g in grads.values())))


class AdamW:
    """Decoupled decay, none on biases and norm weights; gradients clipped to a total norm of max_norm (0: not)."""

    def __init__(self, p, decay=0.0, max_norm=1.0, betas=(0.9, 0.999), epsilon=1e-8):
        self.p, self.decay, self.max_norm, self.betas, self.epsilon, self.t = p, decay, max_norm, betas, epsilon, 0
        self.m = {n: np.zeros_like(v) for n, v in p.items()}
        self.v = {n: np.zeros_like(v) for n, v in p.items()}

    def step(self, grads, lr):
        total = norm(grads)
        scale = min(1.0, self.max_norm / (total + 1e-6)) if self.max_norm else 1.0
        self.t += 1
        for n, p in self.p.items():
            g = grads[n] * scale
            if not is_norm_weight(n) and not n.endswith(".bias"):
                p *= 1 - lr * self.decay
            self.m[n] = self.betas[0] * self.m[n] + (1 - self.betas[0]) * g
            self.v[n] = self.betas[1] * self.v[n] + (1 - self.betas[1]) * g * g
            root = np.sqrt(self.v[n] / (1 - self.betas[1] ** self.t)) + self.epsilon
            p -= lr * self.m[n] / (1 - self.betas[0] ** self.t) / root
        return total


def summary(p):
    return {n: {"l2": float(np.sqrt((v * v).sum())), "sum": float(v.sum()), "first": v.reshape(-1)[:4].tolist()}
            for n, v in p.items()}
