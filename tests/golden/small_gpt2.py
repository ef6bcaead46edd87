"""A decoder of the GPT-2 family in numpy (float64), with the same names as small_model.py has for the Llama family.

GPT-2: Radford et al. 2019. GELU by its tanh form: Hendrycks and Gimpel 2016. Layer norm: Ba et al. 2016.
"""

import numpy as np

import small_model as sm

CONFIG = {
    "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 16, "n_embd": 8, "n_layer": 2,
    "n_head": 2, "n_inner": 12, "n_positions": 32, "n_ctx": 32, "layer_norm_epsilon": 1e-5,
    "activation_function": "gelu_new", "scale_attn_weights": True, "tie_word_embeddings": True, "bos_token_id": 1,
    "eos_token_id": 2, "torch_dtype": "float32",
}
EMBEDDING = "transformer.wte.weight"


def shapes():
    """Linear weights are [in, out], as files of this family have them."""
    h, f = CONFIG["n_embd"], CONFIG["n_inner"]
    norm = lambda n: {n + ".weight": (h,), n + ".bias": (h,)}
    linear = lambda n, inputs, outputs: {n + ".weight": (inputs, outputs), n + ".bias": (outputs,)}
    out = {EMBEDDING: (CONFIG["vocab_size"], h), "transformer.wpe.weight": (CONFIG["n_positions"], h)}
    for i in range(CONFIG["n_layer"]):
        p = f"transformer.h.{i}."
        out |= norm(p + "ln_1") | linear(p + "attn.c_attn", h, 3 * h) | linear(p + "attn.c_proj", h, h)
        out |= norm(p + "ln_2") | linear(p + "mlp.c_fc", h, f) | linear(p + "mlp.c_proj", f, h)
    return out | norm("transformer.ln_f")


def random_parameters(seed):
    return sm.random_values(seed, shapes())


def layer_norm(p, name, x):
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + CONFIG["layer_norm_epsilon"])
    return scaled * p[name + ".weight"] + p[name + ".bias"]


def linear(p, name, x):
    return x @ p[name + ".weight"] + p[name + ".bias"]


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def hidden_states(p, ids, first=0):
    """States after the last norm [T, H] of one sequence, whose first token is at position `first`."""
    heads, length = CONFIG["n_head"], len(ids)
    x = p[EMBEDDING][ids] + p["transformer.wpe.weight"][first:first + length]
    for i in range(CONFIG["n_layer"]):
        n = f"transformer.h.{i}."
        qkv = linear(p, n + "attn.c_attn", layer_norm(p, n + "ln_1", x))
        q, k, v = (part.reshape(length, heads, -1) for part in np.split(qkv, 3, -1))
        x = x + linear(p, n + "attn.c_proj", sm.attention(q, k, v))
        x = x + linear(p, n + "mlp.c_proj", gelu(linear(p, n + "mlp.c_fc", layer_norm(p, n + "ln_2", x))))
    return layer_norm(p, "transformer.ln_f", x)


def log_probs(p, ids, temperature=1.0, first=0):
    return sm.log_probs_of_next(hidden_states(p, ids, first)[:-1] @ p[EMBEDDING].T / temperature, ids)
