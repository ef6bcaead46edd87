#!/usr/bin/env python3
"""Costs of the sandbox of a Python reward: its start, and how many checks a second a warm one answers.

  bench/sandbox.py [--seconds S]

Speaks with python/collimate/reward_worker.py as the program does, in the sandbox and without one. Checks: a function
that compares two numbers, asked for 64 samples at a time; one that runs the completion as code in a process forked from
its own; one that starts a new Python for it. Two workers at a time, on two cores.
"""
import argparse
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "python"
MAGIC = 0x31464C43
REWARDS = """
import os, subprocess, sys
def compared(prompts, completions, **columns):
    return [float(int(c.split()[-1]) == 42) for c in completions]
def in_a_fork(prompts, completions, **columns):
    scores = []
    for code in completions:
        child = os.fork()
        if child == 0:
            try: exec("assert " + code, {})
            except BaseException: os._exit(1)
            os._exit(0)
        scores.append(float(os.waitpid(child, 0)[1] == 0))
    return scores
def in_a_new_python(prompts, completions, **columns):
    return [float(subprocess.run([sys.executable, "-I", "-S", "-c", "assert " + code]).returncode == 0)
            for code in completions]
"""
COMPLETIONS = {"compared": "the answer is 42", "in_a_fork": "6 * 7 == 42", "in_a_new_python": "6 * 7 == 42"}


class Worker:
    def __init__(self, file: str, function: str, sandboxed: bool):
        self.began = time.perf_counter()
        variables = {"PYTHONPATH": str(PACKAGE)}
        command, environment = [sys.executable], {**os.environ, **variables}
        if sandboxed:
            request = {"network": False, "environment": [], "variables": variables, "readable": [str(PACKAGE)],
                       "files": [file], "directory": os.getcwd(), "memory": 1 << 32, "scratch": 1 << 30,
                       "processes": 256, "cpu": 60}
            command += ["-I", str(PACKAGE / "collimate/sandbox.py"), json.dumps(request)]
            environment = {name: os.environ[name] for name in ("PATH", "HOME")}
        self.process = subprocess.Popen([*command, "-m", "collimate.reward_worker", file, function], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ask({"hello": 1})
        self.start_seconds = time.perf_counter() - self.began

    def ask(self, header: dict) -> dict:
        body = json.dumps(header).encode()
        self.process.stdin.write(struct.pack("<IIQ", MAGIC, 0, len(body)) + body)
        self.process.stdin.flush()
        size = struct.unpack("<IIQ", self.process.stdout.read(16))[2]
        return json.loads(self.process.stdout.read(size))

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def checks(worker: Worker, completion: str, until: float, counts: list) -> None:
    samples = [{"prompt": "p", "completion": completion, "example": {}}] * 64
    done = 0
    while time.perf_counter() < until:
        results = worker.ask({"samples": samples})["results"]
        assert all(result["value"] == 1.0 for result in results), results
        done += len(results)
    counts.append(done)


def checks_a_second(file: str, function: str, sandboxed: bool, seconds: float) -> float:
    workers, counts = [Worker(file, function, sandboxed) for _ in range(2)], []
    began = time.perf_counter()
    threads = [threading.Thread(target=checks, args=(worker, COMPLETIONS[function], began + seconds, counts))
               for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = time.perf_counter() - began
    for worker in workers:
        worker.end()
    return sum(counts) / taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as root:
        file = os.path.join(root, "reward.py")
        pathlib.Path(file).write_text(REWARDS)
        for sandboxed in (False, True):
            starts = []
            for _ in range(15):
                worker = Worker(file, "compared", sandboxed)
                starts.append(worker.start_seconds)
                worker.end()
            print(f"{'sandbox' if sandboxed else 'no sandbox'}: start {1000 * statistics.median(starts):.0f} ms "
                  f"({1000 * min(starts):.0f} to {1000 * max(starts):.0f})", flush=True)
            for function in COMPLETIONS:
                rate = checks_a_second(file, function, sandboxed, seconds)
                print(f"  {function}: {rate:.0f} checks a second", flush=True)


if __name__ == "__main__":
    main()
