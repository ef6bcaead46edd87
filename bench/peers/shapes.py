"""Other shapes than Llama's, each beside a Llama of as many FLOPs a token and beside Hugging Face, interleaved:

    python3 bench/peers/shapes.py [--all] [qwen3-15m] [gemma3-15m] [mixtral-120m]     all when none is named

Random weights; mixtral-120m has 16 experts in 8 layers, of which a token goes to 2 (36M parameters). Decoding: greedy,
8 at once, prompts of 64 tokens, 128 new ones. Training: a step of 8 x 512 tokens. Both dtypes of each side; environment
and raw numbers as in compare.py (its part "shapes MODEL"). The share of the machine's peak in a training step is
bench_iteration's, for the shape and for its Llama.
"""

import pathlib
import re
import statistics

import compare

BIN = pathlib.Path(compare.PROGRAM).parent
MODELS = compare.OUT / "shapes"
LLAMA = "LlamaConfig(**sizes, hidden_size=288, intermediate_size=768, num_hidden_layers=6, num_attention_heads=6)"
SHAPES = {  # by name: transformers' config, and that of the Llama beside it
    "qwen3-15m": ("Qwen3Config(**sizes, hidden_size=288, intermediate_size=768, num_hidden_layers=6, "
                  "num_attention_heads=6, num_key_value_heads=6, head_dim=48)", LLAMA),
    "gemma3-15m": ("Gemma3TextConfig(**sizes, hidden_size=288, intermediate_size=768, num_hidden_layers=6, "
                   "num_attention_heads=6, num_key_value_heads=6, head_dim=48, query_pre_attn_scalar=48, "
                   "sliding_window=512)", LLAMA),
    "mixtral-120m": ("MixtralConfig(**sizes, hidden_size=512, intermediate_size=448, num_hidden_layers=8, "
                     "num_attention_heads=8, num_key_value_heads=8, num_local_experts=16, num_experts_per_tok=2)",
                     "LlamaConfig(**sizes, hidden_size=512, intermediate_size=896, num_hidden_layers=8, "
                     "num_attention_heads=8)"),
}
MAKE = """
import sys, torch, transformers
from transformers import *
torch.manual_seed(0)
sizes = dict(vocab_size=32000, max_position_embeddings=2048, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2)
AutoModelForCausalLM.from_config({config}).save_pretrained(sys.argv[1])
"""


def directory(name, config):
    """The model, made where it is not there yet, with the tokenizer of the peers' 15m."""
    made = compare.run_once([compare.python("trl"), "-c", MAKE.format(config=config)], MODELS / name,
                            compare.OUT / "shapes.log")
    for file in compare.peer_model("15m").glob("tokenizer*"):
        (made / file.name).write_bytes(file.read_bytes())
    return made


def ours_decoding(model, dtype):
    log = compare.OUT / "shapes-decode.log"
    compare.run([BIN / "bench_decode", model, compare.COMPUTE[dtype], "3", "8"], log)
    return {"tok_s": compare.json_lines(log)[-1]["tok_s"]}


def ours_training(model, dtype):
    log = compare.OUT / "shapes-train.log"
    compare.run([BIN / "bench_iteration", "3", model, compare.COMPUTE[dtype], "sft"], log)
    row = re.search(r"^SFT step +\S+ +\S+ +(\S+) +(\S+) +\S+ +\S+ +(\S+)%", log.read_text(), re.MULTILINE)
    return {"seconds": float(row[2]), "share": float(row[3])}


def theirs(script, model, *arguments):
    raw = compare.OUT / "peer.jsonl"
    raw.unlink(missing_ok=True)
    environment = {**compare.best_allocator(), "PEERS_MODELS": str(model.parent)}
    command = [compare.python("trl"), compare.SCRIPTS / script, "--models", model.name, *arguments, "--out", raw]
    compare.run(command, compare.OUT / "shapes-peer.log", environment)
    return compare.json_lines(raw)[-1]


def measure(name):
    shape, llama = (directory(n, c) for n, c in zip((name, f"{name}-llama"), SHAPES[name]))
    for repeat in range(compare.REPEATS):
        print(f"{name}: round {repeat + 1} of {compare.REPEATS}", flush=True)
        for dtype in compare.DTYPES:
            for side, model in (("ours", shape), ("ours as a Llama", llama)):
                sample = ours_decoding(model, dtype) | ours_training(model, dtype)
                compare.record(f"shapes {name}", f"{side} {dtype}", sample)
            decoded = theirs("decode_hf.py", shape, "--dtypes", dtype, "--batches", "8", "--budget", "10")
            trained = theirs("train_torch.py", shape, "--tasks", "sft", "--dtypes", dtype, "--steps", "3")
            compare.record(f"shapes {name}", f"HF {dtype}", {"tok_s": decoded["tok_s"], "seconds": trained["s_min"]})


def best(by_side, side, key, choose):
    """The better dtype's median."""
    return choose(statistics.median(s[key] for s in samples) for name, samples in by_side.items()
                  if name.rsplit(" ", 1)[0] == side)


def table(name, every):
    by_side = compare.samples_of(f"shapes {name}", every)
    print(f"\n{name}: median over processes (least .. largest)")
    print("| side | decoding, tokens a second | training step, seconds | share of the peak, % |")
    print("| --- | --- | --- | --- |")
    for side, samples in by_side.items():
        cells = [compare.spread([s[key] for s in samples if key in s], digits)
                 for key, digits in (("tok_s", 0), ("seconds", 2), ("share", 1)) if any(key in s for s in samples)]
        print(f"| {side} | " + " | ".join(cells) + " |")
    decoding = {side: best(by_side, side, "tok_s", max) for side in ("ours", "ours as a Llama", "HF")}
    training = {side: best(by_side, side, "seconds", min) for side in ("ours", "ours as a Llama", "HF")}
    print(f"decoding: {decoding['ours'] / decoding['HF']:.2f} times HF (aim 2), "
          f"{decoding['ours'] / decoding['ours as a Llama']:.2f} of the Llama's (aim 0.9); training: "
          f"{training['HF'] / training['ours']:.2f} times HF (aim 2), "
          f"{training['ours as a Llama'] / training['ours']:.2f} of the Llama's (aim 0.9)")


def main(models, every):
    MODELS.mkdir(parents=True, exist_ok=True)
    if not compare.python("trl").exists():
        raise SystemExit(f"not installed: trl; try bash {compare.SCRIPTS}/setup.sh trl")
    for name in models:
        measure(name)
        table(name, every)


if __name__ == "__main__":
    compare.call_main(main, SHAPES, list(SHAPES))
