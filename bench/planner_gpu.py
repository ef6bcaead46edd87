"""The planner against one GPU: predicted and measured seconds of GRPO's functions, and a device's memory.

    python3 bench/planner_gpu.py measure FILE [--shapes qwen2.5-0.5b …]   needs torch and a CUDA device, nothing else
    python3 bench/planner_gpu.py compare FILE                             needs build/release/bin/collimate

`measure` runs each function in plain PyTorch on random weights of a shape, in bfloat16, as a careful user would write
it (fused attention and normalisation, AdamW in one kernel, decoding as CUDA graphs and without), and writes the seconds
(median of ROUNDS, least and largest) and the peak of memory to FILE. Lengths are fixed: ROWS rows of PROMPT +
COMPLETION tokens, UPDATES optimizer steps. A decoded token's seconds are measured at POINTS lengths and summed over the
completion by the trapezoid rule. `compare` plans the same run for the device's kind with generic constants and prints
both. What the planner adds to each function (phase_seconds), and a loop of one process has not, is left out.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
COLLIMATE = pathlib.Path(os.environ.get("COLLIMATE", ROOT / "build/release/bin/collimate")).resolve()
ROWS, PROMPT, COMPLETION, UPDATES, ROUNDS, POINTS = 256, 512, 512, 4, 3, 5
# Hidden width, layers, heads, key-value heads, head width, intermediate width, vocabulary (config.json of each), and
# the rows of a micro-batch. The embedding is tied.
SHAPES = {"qwen2.5-0.5b": (896, 24, 14, 2, 64, 4864, 151936, 16),
          "qwen2.5-1.5b": (1536, 28, 12, 2, 128, 8960, 151936, 8),
          "qwen2.5-3b": (2048, 36, 16, 2, 128, 11008, 151936, 4)}


def model_of(shape, device):
    """Like Qwen2; forward(tokens [rows, length]) gives all logits, step(tokens [rows], cache, at) those of a token."""
    import torch
    from torch import nn
    from torch.nn import functional as F
    width, layers, heads, kv_heads, head, inner, vocabulary, _ = shape

    def rotate(x, cosine, sine):
        left, right = x.chunk(2, -1)
        return x * cosine + torch.cat((-right, left), -1) * sine

    class Norm(nn.RMSNorm):
        def forward(self, x):
            return F.rms_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.eps)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.after = Norm(width, 1e-6), Norm(width, 1e-6)
            self.qkv = nn.Linear(width, (heads + 2 * kv_heads) * head)
            self.out = nn.Linear(heads * head, width, bias=False)
            self.gate_up, self.down = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)

        def project(self, x, cosine, sine):
            rows, length, _ = x.shape
            q, k, v = self.qkv(self.before(x)).split([heads * head, kv_heads * head, kv_heads * head], -1)
            q, k, v = (part.view(rows, length, -1, head).transpose(1, 2) for part in (q, k, v))
            return rotate(q, cosine, sine), rotate(k, cosine, sine), v

        def finish(self, x, attended):
            x = x + self.out(attended)
            gate, up = self.gate_up(self.after(x)).chunk(2, -1)
            return x + self.down(F.silu(gate) * up)

        def forward(self, x, cosine, sine, cache=None):
            rows, length, _ = x.shape
            q, k, v = self.project(x, cosine, sine)
            if cache is not None:
                cache[0][:, :, :length], cache[1][:, :, :length] = k, v
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            return self.finish(x, attended.transpose(1, 2).reshape(rows, length, -1))

        def step(self, x, cosine, sine, cache, at):
            rows = x.shape[0]
            q, k, v = self.project(x, cosine, sine)
            cache[0][:, :, at:at + 1], cache[1][:, :, at:at + 1] = k, v
            # The heads that share keys are the rows of one query, so that nothing is repeated.
            q = q.view(rows, kv_heads, heads // kv_heads, head)
            attended = F.scaled_dot_product_attention(q, cache[0][:, :, :at + 1], cache[1][:, :, :at + 1])
            return self.finish(x, attended.reshape(rows, 1, -1))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(vocabulary, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.last = Norm(width, 1e-6)
            angle = torch.outer(torch.arange(PROMPT + COMPLETION), 1e6 ** (-torch.arange(0, head, 2) / head))
            angle = torch.cat((angle, angle), -1)
            self.register_buffer("cosine", angle.cos().to(torch.bfloat16), persistent=False)
            self.register_buffer("sine", angle.sin().to(torch.bfloat16), persistent=False)

        def forward(self, tokens, cache=None, last_only=False):
            length, x = tokens.shape[1], self.embed(tokens).to(torch.bfloat16)
            for index, block in enumerate(self.blocks):
                x = block(x, self.cosine[:length], self.sine[:length], None if cache is None else cache[index])
            return F.linear(self.last(x[:, -1:] if last_only else x), self.embed.weight.to(torch.bfloat16))

        def step(self, tokens, cache, at):
            x = self.embed(tokens[:, None])
            for index, block in enumerate(self.blocks):
                x = block.step(x, self.cosine[at:at + 1], self.sine[at:at + 1], cache[index], at)
            return F.linear(self.last(x), self.embed.weight)[:, 0]

    with torch.device(device):
        model = Decoder()
        for weight in model.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02)
    return model


def log_probs(model, tokens):
    from torch.nn import functional as F
    logits = model(tokens[:, :-1]).float()
    return -F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none").view(tokens.shape[0], -1)


def seconds(body, rounds=ROUNDS, warm=1):
    """Median, least and largest seconds of a call of `body`, after `warm` calls."""
    import torch
    samples = []
    for index in range(warm + rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        body()
        torch.cuda.synchronize()
        if index >= warm:
            samples.append(time.perf_counter() - begin)
    return [statistics.median(samples), min(samples), max(samples)]


def score(model, tokens, rows):
    import torch

    def body():
        with torch.inference_mode():
            for begin in range(0, ROWS, rows):
                log_probs(model, tokens[begin:begin + rows])
    return {"seconds": seconds(body)}


def generate(model, shape, tokens):
    """Prefill of all rows, then one decoded token at each of POINTS lengths: eager and as a CUDA graph."""
    import torch
    _, layers, _, kv_heads, head, _, _, rows = shape
    device, length = tokens.device, PROMPT + COMPLETION
    with torch.inference_mode():
        cache = torch.zeros(layers, 2, ROWS, kv_heads, length, head, dtype=torch.bfloat16, device=device)

        def prefill():
            for begin in range(0, ROWS, rows):
                part = [layer[:, begin:begin + rows] for layer in cache]
                model(tokens[begin:begin + rows, :PROMPT], part, last_only=True)
        found = {"prefill": seconds(prefill), "eager": {}, "graph": {}}

        def sampled(at):
            logits = model.step(tokens[:, at], cache, at).float()
            noise = torch.empty_like(logits).exponential_()
            return (logits.softmax(-1) / noise).argmax(-1)
        points = [PROMPT + index * (COMPLETION - 1) // (POINTS - 1) for index in range(POINTS)]
        for at in points:
            found["eager"][at - PROMPT] = seconds(lambda: sampled(at), 5, 2)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                sampled(at)
            found["graph"][at - PROMPT] = seconds(graph.replay, 5, 2)
            del graph
    return found


def train(shape, tokens):
    """Four updates of a policy gradient: fp32 master weights under autocast, gradients summed in fp32, fused AdamW."""
    import torch
    rows = shape[-1]
    model = model_of(shape, tokens.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    advantage = torch.randn(ROWS, 1, device=tokens.device)
    old = torch.full((ROWS, PROMPT + COMPLETION - 1), -12.0, device=tokens.device)
    update_seconds = []

    def body():
        for update in range(UPDATES):
            for begin in range(update * ROWS // UPDATES, (update + 1) * ROWS // UPDATES, rows):
                part = slice(begin, begin + rows)
                with torch.autocast("cuda", torch.bfloat16):
                    lived = log_probs(model, tokens[part])
                ratio = (lived - old[part]).exp()
                loss = -torch.minimum(ratio * advantage[part], ratio.clamp(0.8, 1.2) * advantage[part]).mean()
                loss.backward()
            torch.cuda.synchronize()
            begin = time.perf_counter()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
            torch.cuda.synchronize()
            update_seconds.append(time.perf_counter() - begin)
    torch.cuda.reset_peak_memory_stats()
    found = {"seconds": seconds(body)}
    found |= {"update": statistics.median(update_seconds[UPDATES:]), "peak_bytes": torch.cuda.max_memory_allocated(),
              "parameters": sum(weight.numel() for weight in model.parameters())}
    return found


def device_limits():
    """The device table's numbers of a GPU, measured: FLOP/s, bytes a second of memory and the host, usable bytes."""
    import torch
    free, total = torch.cuda.mem_get_info()
    found = {"name": torch.cuda.get_device_name(), "free_bytes": free, "total_bytes": total}
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    found["flops"] = 2 * 8192**3 / seconds(lambda: a @ b, 20, 5)[0]
    x, y = (torch.randn(1 << 30, device="cuda") for _ in range(2))
    found["memory_bytes_per_second"] = 8 * x.numel() / seconds(lambda: y.copy_(x), 20, 5)[0]
    host = torch.empty(1 << 28, pin_memory=True)
    found["host_bytes_per_second"] = 4 * host.numel() / seconds(lambda: x[:1 << 28].copy_(host), 5, 2)[0]
    return found


def measure(path, shapes):
    import torch
    torch.manual_seed(1)
    found = {"torch": torch.__version__, "device": device_limits(), "models": {}}
    for name in shapes:
        shape = SHAPES[name]
        torch.cuda.empty_cache()
        tokens = torch.randint(0, shape[6], (ROWS, PROMPT + COMPLETION), device="cuda")
        model = model_of(shape, "cuda").to(torch.bfloat16)
        found["models"][name] = {"reference.log_probs": score(model, tokens, shape[-1]),
                                 "policy.generate": generate(model, shape, tokens)}
        del model
        torch.cuda.empty_cache()
        found["models"][name]["policy_trainer.train"] = train(shape, tokens)
        print(name, json.dumps(found["models"][name]), flush=True)
        pathlib.Path(path).write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found["device"]))


def predicted(name, device):
    command = [COLLIMATE, "plan", "--flow", "grpo", "--models", name, "--cluster", f"1x{device}", "--rows", ROWS,
               "--prompt", PROMPT, "--completion", COMPLETION, "--updates", UPDATES, "--micro-batch", SHAPES[name][-1],
               "--json"]
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["plans"][0]


def decode_seconds(points):
    """The trapezoid rule over a completion; points: {tokens decoded before: [median, least, largest]}."""
    ordered = sorted((int(at), value[0]) for at, value in points.items())
    return sum((b - a) * (x + y) / 2 for (a, x), (b, y) in zip(ordered, ordered[1:])) * COMPLETION / (COMPLETION - 1)


def print_row(name, what, expected, got):
    print(f"| {name} | {what} | {expected:.3f} | {got:.3f} | {100 * (expected / got - 1):+.0f} % |")


def compare(path, device):
    found = json.loads(pathlib.Path(path).read_text())
    limits = found["device"]
    print(f"{limits['name']}, torch {found['torch']}: {limits['flops'] / 1e12:.0f} TFLOP/s in bfloat16, "
          f"{limits['memory_bytes_per_second'] / 1e9:.0f} GB/s of memory, "
          f"{limits['host_bytes_per_second'] / 1e9:.1f} GB/s from the host, "
          f"{limits['free_bytes'] / 1e9:.1f} of {limits['total_bytes'] / 1e9:.1f} GB free\n")
    print("| model | what | predicted s | measured s | error |\n|---|---|---|---|---|")
    for name, functions in found["models"].items():
        plan = predicted(name, device)
        calls = {f"{call['model']}.{call['function']}": call["parts"] for call in plan["calls"]}
        scoring, drawing, training = (calls[key] for key in
                                  ("reference.log_probs", "policy.generate", "policy_trainer.train"))
        drawn, trained = functions["policy.generate"], functions["policy_trainer.train"]
        decoded = drawing["memory"] + drawing["latency"]
        updates = trained["update"] * UPDATES
        for what, expected, got in [
                ("log-probs", scoring["compute"], functions["reference.log_probs"]["seconds"][0]),
                ("prefill", drawing["prefill"], drawn["prefill"][0]),
                ("decode, CUDA graphs", decoded, decode_seconds(drawn["graph"])),
                ("decode, eager", decoded, decode_seconds(drawn["eager"])),
                ("training without updates", training["compute"], trained["seconds"][0] - updates),
                ("updates", training["optimizer"], updates)]:
            print_row(name, what, expected, got)
        memory = sum(item["bytes"] for call in plan["calls"] if call["model"] == "policy_trainer"
                     for item in call["holds"] + call["needs"])
        print_row(name, "memory of training, GB", memory / 1e9, trained["peak_bytes"] / 1e9)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("verb", choices=["measure", "compare"])
    parser.add_argument("file", help="the JSON file that measure writes and compare reads")
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--device", default="H100-80", help="the planner's name of the device")
    arguments = parser.parse_args()
    if arguments.verb == "measure":
        measure(arguments.file, arguments.shapes)
    else:
        compare(arguments.file, arguments.device)


if __name__ == "__main__":
    main()
