"""Our server beside llama.cpp's and vLLM's, one after another, interleaved, every sample a fresh server:

    python3 bench/peers/server.py [--all] [load] [start]        both when none is named

load: the 15M model, streamed completions of 128 tokens after prompts of 64 different ones, temperature 0, by 1, 8 and
64 clients that each send one request after another: requests per second, seconds to the first token and between
tokens. The clients are one process of the standard library (server_load.py) on the same cores; its share is shown.
start: seconds from the start of the process until it answers, and resident memory before the first request, at 15M
(from load's servers too) and 0.5B (ours and vLLM's).
Environment and raw numbers as in compare.py (its parts "server load" and "server start MODEL"); both dtypes of each
side. Sides: `collimate serve`; `python -m llama_cpp.server` of the llamacpp peer, which computes one request at a time;
llama.cpp's own llama-server, where LLAMA_SERVER names its binary; `vllm serve`. All have two threads.
"""

import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

import compare
import inputs
import targets

HERE = pathlib.Path(__file__).resolve().parent
PROMPT_TOKENS, NEW_TOKENS = 64, 128
REQUESTS = {1: 8, 8: 5, 64: 3}  # of each client, by the number of clients
THREADS = "2"
VLLM = {"VLLM_TARGET_DEVICE": "cpu", "VLLM_CPU_KVCACHE_SPACE": "2", "VLLM_CPU_OMP_THREADS_BIND": "0-1",
        "VLLM_LOGGING_LEVEL": "WARNING", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_DO_NOT_TRACK": "1"}


@dataclasses.dataclass
class Side:
    name: str
    command: list  # "PORT" stands for the port
    probe: str = "/health"  # answers 200 once the model is ready
    texts: bool = False  # prompts as texts, not as token ids
    fields: dict = dataclasses.field(default_factory=dict)  # of its requests alone
    environment: dict = None


def gguf(dtype):
    """The 15M model with a vocabulary, made once."""
    kind = {"fp32": "f32", "bf16": "bf16"}[dtype]
    return compare.run_once([compare.python("llamacpp"), HERE / "server_gguf.py", compare.SCRIPTS, "15m", kind],
                            compare.OUT / "gguf" / f"15m-characters-{dtype}.gguf", compare.OUT / "server_gguf.log")


def ours(size, dtype):
    model = inputs.model_directory(compare.OUT, size) if size == "15m" else compare.peer_model(size)
    return Side(f"ours {dtype}", [compare.PROGRAM, "serve", model, "--compute", compare.COMPUTE[dtype], "--port",
                                  "PORT", "--name", "model"], fields={"ignore_eos": True})


def vllm(size, dtype):
    # This does what `vllm serve` does, which the package vllm-cpu cannot start: it asks for the version of a package
    # named vllm.
    command = [compare.python("vllm"), "-m", "vllm.entrypoints.openai.api_server", "--model", compare.peer_model(size),
               "--dtype", compare.COMPUTE[dtype], "--host", "127.0.0.1", "--port", "PORT",
               "--served-model-name", "model", "--max-model-len", "256", "--max-num-seqs", "64",
               "--max-num-batched-tokens", "4096", "--generation-config", "vllm", "--disable-uvicorn-access-log",
               "--disable-log-stats"]
    return Side(f"vLLM {dtype}", command, fields={"ignore_eos": True},
                environment={**compare.best_allocator(), **VLLM})


def llama_cpp(dtype):
    command = [compare.python("llamacpp"), "-m", "llama_cpp.server", "--model", gguf(dtype), "--model_alias", "model",
               "--host", "127.0.0.1", "--port", "PORT", "--n_threads", THREADS, "--n_threads_batch", THREADS,
               "--n_ctx", "256", "--logits_all", "false", "--interrupt_requests", "false", "--verbose", "false"]
    return Side(f"llama_cpp.server {dtype}", command, "/v1/models", texts=True, fields={"repeat_penalty": 1.0})


def llama_server(dtype):
    command = [os.environ["LLAMA_SERVER"], "--model", gguf(dtype), "--alias", "model", "--host", "127.0.0.1",
               "--port", "PORT", "--threads", THREADS, "--threads-batch", THREADS, "--parallel", "64", "--ctx-size",
               str(64 * 256), "--no-webui"]
    return Side(f"llama-server {dtype}", command, texts=True, fields={"ignore_eos": True})


def sides(size):
    found = [ours(size, d) for d in compare.DTYPES]
    missing = [peer for peer in ("llamacpp", "vllm") if not compare.python(peer).exists()]
    for d in compare.DTYPES:
        if size == "15m" and "llamacpp" not in missing:
            found.append(llama_cpp(d))
            if "LLAMA_SERVER" in os.environ:
                found.append(llama_server(d))
        if "vllm" not in missing and not (size == "0.5b" and d == "fp32"):  # it is kept in bf16
            found.append(vllm(size, d))
    if missing:
        print(f"not installed: {', '.join(missing)}; try bash {compare.SCRIPTS}/setup.sh {' '.join(missing)}")
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A running server. Leaving it ends it and all that it started."""

    def __init__(self, side):
        self.port, self.probe = free_port(), side.probe
        self.log = compare.OUT / f"server-{side.name.replace(' ', '-')}.log"
        command = [str(self.port) if word == "PORT" else str(word) for word in side.command]
        with open(self.log, "w") as output:
            self.begin = time.monotonic()
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=compare.ROOT,
                                            env=side.environment, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(30)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # what did not heed it, and children that are left
        self.process.wait()

    def answers(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            connection.request("GET", self.probe)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False

    def ready(self):
        """Seconds from its start until it answers."""
        while not self.answers():
            seconds = time.monotonic() - self.begin
            if self.process.poll() is not None or seconds > 600:
                sys.exit(f"[bench/peers] {' '.join(self.process.args)} did not get ready in {seconds:.0f} s; see "
                         f"{self.log}")
            time.sleep(0.005 if seconds < 5 else 0.05)
        return time.monotonic() - self.begin

    def memory(self):
        """Resident MiB of it and its children; what they share counts in each."""
        parents = {}
        for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                parents[int(entry.parent.name)] = int(entry.read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue  # it has ended
        family = {self.process.pid}
        while more := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= more
        return sum(resident(pid) for pid in family)


def resident(pid):
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0  # it has ended
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


def requests(side, clients, each, tokens, seed):
    """By client: its requests, no two with one prompt."""
    draw = random.Random(f"{seed} {clients} {tokens}")
    result = []
    for _ in range(clients):
        bodies = []
        for _ in range(each):
            ids = [inputs.SPECIALS + draw.randrange(len(inputs.CHARACTERS)) for _ in range(PROMPT_TOKENS)]
            prompt = "".join(inputs.CHARACTERS[i - inputs.SPECIALS] for i in ids) if side.texts else ids
            bodies.append({"model": "model", "prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": True,
                           **side.fields})
        result.append(bodies)
    return result


def send(server, bodies, tokens):
    job = json.dumps({"port": server.port, "bodies": bodies, "tokens": tokens})
    done = subprocess.run([sys.executable, HERE / "server_load.py"], input=job, stdout=subprocess.PIPE, text=True,
                          timeout=1800)
    if done.returncode != 0:
        sys.exit(f"[bench/peers] the clients ended with {done.returncode}; see {server.log}")
    return json.loads(done.stdout)


def sample(side, size, loaded):
    with compare.alone(), Server(side) as server:
        start = {"ready": server.ready()}
        time.sleep(1)
        start["idle"] = server.memory()
        if loaded:
            for clients, each in REQUESTS.items():
                send(server, requests(side, clients, 1, 16, "warm-up"), 16)
                line = send(server, requests(side, clients, each, NEW_TOKENS, "load"), NEW_TOKENS)
                compare.record("server load", side.name, {"clients": clients, **line})
            start["after"] = server.memory()
    compare.record(f"server start {size}", side.name, start)


def load_table(every):
    by_side = compare.samples_of("server load", every)
    for clients in REQUESTS:
        print(f"\nserver, 15m, {clients} clients: median over processes (least .. largest)")
        print("| side | requests per s | tokens per s | first token ms: p50 | p99 | between tokens ms: p50 | p99 "
              "| pieces of a stream | clients' share of a core |")
        for side, samples in by_side.items():
            here = [s for s in samples if s["clients"] == clients]
            if not here:
                continue
            column = lambda name, scale, digits: compare.spread(
                [scale * s[name] for s in here if s[name] is not None], digits)
            print(f"| {side} | {column('requests_s', 1, 2)} | {column('tok_s', 1, 0)} "
                  f"| {column('first_p50', 1e3, 1)} | {column('first_p99', 1e3, 1)} "
                  f"| {column('between_p50', 1e3, 2)} | {column('between_p99', 1e3, 2)} "
                  f"| {column('pieces', 1, 0)} | {column('client_cpu', 100, 0)} % |")
        if ratio := compare.ratio(by_side, {"clients": clients}, "requests_s"):
            aim = targets.shown(targets.SERVER.get(clients))
            print(f"best of ours / best of theirs: {ratio}{f'; aim {aim}' if aim else ''}")


def start_table(size, every):
    by_side = compare.samples_of(f"server start {size}", every)
    if not by_side:
        return
    weights = (compare.peer_model(size) / "model.safetensors").stat().st_size / 2**20
    print(f"\nserver, {size}: start and idle memory, median over processes (least .. largest)")
    print(f"| side | ready after s (aim {targets.READY_SECONDS[size]}) "
          f"| idle MiB (aim {weights:.0f} of weights + {targets.IDLE_MIB}) |")
    for side, samples in by_side.items():
        ready, idle = ([s[name] for s in samples] for name in ("ready", "idle"))
        print(f"| {side} | {compare.spread(ready, 2)} | {compare.spread(idle, 0)} |")


def main(parts, every):
    compare.OUT.mkdir(parents=True, exist_ok=True)
    sizes = [size for size in (["15m", "0.5b"] if "start" in parts else ["15m"]) if compare.peer_model(size)]
    if "15m" not in sizes:
        print(f"15m: no model; try bash {compare.SCRIPTS}/setup.sh trl")
        return
    inputs.write_model(compare.OUT, "15m", compare.peer_model("15m"))
    by_size = {size: sides(size) for size in sizes}
    for repeat in range(compare.REPEATS):
        print(f"round {repeat + 1} of {compare.REPEATS}", flush=True)
        for size, found in by_size.items():
            for side in found:
                sample(side, size, "load" in parts and size == "15m")
    if "load" in parts:
        load_table(every)
    for size in sizes:
        start_table(size, every)


if __name__ == "__main__":
    compare.call_main(main, ["load", "start"], ["load", "start"])
