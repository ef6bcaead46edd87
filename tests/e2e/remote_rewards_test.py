"""Rewards from servers on the loopback address: of the user's own, and from a judge behind `collimate serve`."""
import http.server
import json
import pathlib
import random
import signal
import subprocess
import tempfile
import threading
import unittest

from python_support import PATIENCE, PROGRAM, config, of_numbers, problems, write_model
from serve_support import Server, make_model

NUMBER = {"type": "integer", "minimum": 10, "maximum": 99}


class RewardServer:
    """Gives each completion a number that no later request gets again, and remembers what it gave."""

    def __init__(self):
        self.given, numbers = [], random.Random(3)
        given, lock = self.given, threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    rewards = [numbers.random() for _ in asked["completions"]]
                    given.extend(zip(asked["prompts"], asked["completions"], asked["ground_truth"], rewards))
                body = json.dumps({"rewards": rewards}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/score"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class RemoteRewards(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.data = self.root / "rows.jsonl"
        self.data.write_text("".join(json.dumps(row) + "\n" for row in problems(8)))

    def run_verb(self, code: int, *words) -> str:
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + done.stderr

    def config_with(self, reward, **run) -> pathlib.Path:
        if not (self.root / "start").exists():
            write_model(self.root / "start")
        values = config(str(self.root / "start"), data={"train": str(self.data)}, run=run)
        values["reward"] = reward
        (self.root / "run.yaml").write_text(json.dumps(values))
        return self.root / "run.yaml"

    def metrics(self, output: str) -> list:
        lines = (self.root / output / "metrics.jsonl").read_text().splitlines()
        return [of_numbers(json.loads(line)) for line in lines]

    def test_a_run_that_continues_asks_for_no_reward_again(self):
        server = RewardServer()
        self.addCleanup(server.close)
        entry = {"http": server.url, "batch_samples": 5, "tries": 1}
        path = self.config_with(entry, iterations=4, save_every=2)
        self.run_verb(0, "train", path, "--output", self.root / "whole")
        given = list(server.given)
        self.assertGreaterEqual(len(given), 4 * 16)
        by_sample = {row[:3]: row[3] for row in given}
        self.assertTrue(all(row[2] == "".join(sorted(row[0].rstrip("="))) for row in by_sample))
        # Without the last saves, it goes on from the second iteration by the journal's rewards, at another address.
        moved = RewardServer()
        self.addCleanup(moved.close)
        path = self.config_with({**entry, "http": moved.url}, iterations=4, save_every=2)
        self.run_verb(0, "train", path, "--output", self.root / "again", "--resume",
                      self.root / "whole/checkpoints/step-000002")
        self.assertEqual(self.metrics("again"), self.metrics("whole"))
        self.assertLess(len(moved.given), 16)  # the trial before a run alone

    def test_check_and_eval_say_what_a_server_gives(self):
        server = RewardServer()
        self.addCleanup(server.close)
        path = self.config_with({"http": server.url})
        self.assertIn(f"reward http on {self.data}:1: \"011\" gets ", self.run_verb(0, "check", path))
        self.run_verb(0, "train", path, "--output", self.root / "out")
        given = len(server.given)
        self.run_verb(0, "eval", self.root / "out/model", "--data", self.data, "--reward", server.url,
                      "--max-tokens", "6")
        self.assertGreaterEqual(len(server.given), given + 8)
        server.close()
        said = self.run_verb(2, "check", self.config_with({"http": server.url, "tries": 2}))
        self.assertIn(f"expected a reward from its server, got {server.url} in 2 tries: nobody answers there; try "
                      "starting the server, or the host and port at which it listens\n", said)

    def test_a_judge_behind_our_own_server_scores_samples(self):
        judge = Server(make_model(self.root / "judge", 4096), "--cache-blocks", "500")
        self.addCleanup(judge.close, signal.SIGKILL)
        form = {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": NUMBER}}
        entry = {"judge": judge.url + "/v1", "model": judge.name, "prompt": "0:{completion}", "pattern": r"\d+",
                 "highest": 99, "request": {"response_format": form, "max_tokens": 3}, "tries": 1, "on_error": 0}
        self.run_verb(0, "train", self.config_with(entry), "--output", self.root / "judged")
        for line in self.metrics("judged"):
            self.assertEqual(line["reward/errors"], 0, line)
            self.assertTrue(10 <= line["rewards/judge/mean"] <= 99, line)


if __name__ == "__main__":
    unittest.main()
