"""Samples that are drawn in turns with an environment (reward: gym), from the command line."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from python_support import PATIENCE, PROGRAM, ROOT, config, of_numbers, write_model

EXAMPLE = ROOT / "examples/number_game"
GAME = EXAMPLE / "number_game.py"


class MultiTurn(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        model = pathlib.Path(write_model(self.root / "start", vocab_size=20, max_position_embeddings=64))
        (model / "tokenizer_config.json").write_text(json.dumps({"char_ords": [ord(c) for c in "0123456789<>?="]}))
        self.data = self.root / "rows.jsonl"
        self.data.write_text("".join(json.dumps({"prompt": "?", "ground_truth": str(i % 10)}) + "\n"
                                     for i in range(20)))

    def config_with(self, entry: dict, recipe: str = "grpo", **sections) -> pathlib.Path:
        values = config(str(self.root / "start"), data={"train": str(self.data), "eval": str(self.data)}, **sections)
        values["recipe"] = recipe
        values["rollout"] |= {"completion_tokens": 12, "prompt_tokens": 4}
        values["reward"] = [entry]
        (self.root / "run.yaml").write_text(json.dumps(values))
        return self.root / "run.yaml"

    def run_verb(self, code: int, *words) -> str:
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def metrics(self, output: str) -> list:
        """Gives those of the iterations, without the evaluations between."""
        lines = [json.loads(line) for line in (self.root / output / "metrics.jsonl").read_text().splitlines()]
        return [of_numbers(line) for line in lines if "critic/rewards/mean" in line]

    def test_turns_are_drawn_trained_and_measured(self):
        entry = {"gym": f"{GAME}:NumberGame", "max_turns": 4, "turn_tokens": 1}
        path = self.config_with(entry, run={"iterations": 3, "evaluate_every": 3})
        self.assertIn('"0" gets 1 and ends, "I do not know." gets -1 and ends, "" gets -1 and ends\n',
                      self.run_verb(0, "check", path))
        self.run_verb(0, "train", path, "--output", self.root / "out")
        for line in self.metrics("out"):
            self.assertEqual(line["mismatch/logprob_abs_max"], 0, line)
            self.assertEqual(line["rollout/failed_steps"], 0)
            self.assertTrue(1 < line["rollout/turns/mean"] <= 4, line)
            # A turn has one token: as many are compared and trained as there were turns, and no observation.
            self.assertAlmostEqual(line["mismatch/tokens_compared"], 16 * line["rollout/turns/mean"], msg=line)
        told = [json.loads(line) for line in (self.root / "out/samples/step-000001.jsonl").read_text().splitlines()]
        self.assertTrue(any("<" in row["completion"] or ">" in row["completion"] for row in told), told[:3])

    def test_the_example_learns_to_search(self):
        """From random weights to all ten digits in at most four guesses each, which no order of guesses alone gives."""
        command = [PROGRAM, "train", EXAMPLE.relative_to(ROOT) / "number_game.yaml", "--output", self.root / "game"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in (self.root / "game/metrics.jsonl").read_text().splitlines()]
        measured = [line["val/reward/mean"] for line in lines if "val/reward/mean" in line]
        self.assertEqual((measured[0], measured[-1]), (-1, 1), measured)

    def test_ppo_takes_turns_too(self):
        entry = {"gym": f"{GAME}:NumberGame", "max_turns": 4, "turn_tokens": 1}
        self.run_verb(0, "train", self.config_with(entry, "ppo"), "--output", self.root / "ppo")
        for line in self.metrics("ppo"):
            self.assertEqual(line["mismatch/logprob_abs_max"], 0, line)
            self.assertGreater(line["rollout/turns/mean"], 1, line)

    def test_a_killed_run_goes_on_with_the_same_bits(self):
        # An environment that answers by chance: what it said is in the journal.
        (self.root / "chance.py").write_text(
            "import random\nclass Chance:\n    def __init__(self, prompt, **columns): pass\n"
            "    def step(self, completion):\n"
            "        return {'observation': random.choice('<>'), 'reward': random.random(),\n"
            "                'done': random.random() < 0.3}\n")
        entry = {"gym": f"{self.root}/chance.py:Chance", "max_turns": 4, "turn_tokens": 1}
        path = self.config_with(entry, run={"iterations": 4, "save_every": 2})
        self.run_verb(0, "train", path, "--output", self.root / "whole")
        self.run_verb(0, "train", path, "--output", self.root / "again", "--resume",
                      self.root / "whole/checkpoints/step-000002")
        again, whole = self.metrics("again"), self.metrics("whole")
        for line in again + whole:  # a mean over calls, which rows reach as environments answer: its last digit differs
            line["rewards/Chance/mean"] = round(line["rewards/Chance/mean"], 9)
        self.assertEqual(again, whole)
        self.assertEqual((self.root / "again/model/model.safetensors").read_bytes(),
                         (self.root / "whole/model/model.safetensors").read_bytes())

    def test_slow_environments_overlap_and_a_kill_loses_nothing(self):
        (self.root / "slow.py").write_text(
            "import time\nclass Slow:\n"
            "    def __init__(self, prompt, ground_truth): self.turns = int(ground_truth) % 3\n"
            "    def step(self, completion):\n"
            "        time.sleep(0.01)\n        self.turns -= 1\n"
            "        return '<' if self.turns > 0 else None\n")
        entry = {"gym": f"{self.root}/slow.py:Slow", "max_turns": 4, "turn_tokens": 1, "workers": 4}
        path = self.config_with(entry, run={"iterations": 6, "save_every": 1})
        self.run_verb(0, "train", path, "--output", self.root / "whole")
        process = subprocess.Popen([PROGRAM, "train", path, "--output", self.root / "killed"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while not (self.root / "killed/checkpoints/step-000002").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
        self.run_verb(0, "train", path, "--output", self.root / "killed")
        self.assertEqual((self.root / "killed/model/model.safetensors").read_bytes(),
                         (self.root / "whole/model/model.safetensors").read_bytes())

    def test_a_step_that_fails_is_what_on_error_says(self):
        (self.root / "fails.py").write_text(
            "class Fails:\n    def __init__(self, prompt, ground_truth): self.odd = int(ground_truth) % 2\n"
            "    def step(self, completion):\n"
            "        if self.odd: raise ValueError('odd')\n        return {'reward': 1.0}\n")
        entry = {"gym": f"{self.root}/fails.py:Fails", "turn_tokens": 1, "on_error": "drop"}
        self.run_verb(0, "train", self.config_with(entry), "--output", self.root / "dropped")
        self.assertTrue(all(line["rollout/failed_steps"] == line["reward/errors"] > 0
                            for line in self.metrics("dropped")))
        said = self.run_verb(1, "train", self.config_with({**entry, "on_error": "stop"}), "--output",
                             self.root / "stopped")
        self.assertIn("[reward Fails] ValueError: odd; try mending the reward", said)
        self.assertEqual(said.count("raise ValueError('odd')"), 1, said)

    def test_check_says_what_a_first_step_leads_to(self):
        (self.root / "echo.py").write_text(
            "class Echo:\n"
            "    def __init__(self, prompt, **row): pass\n"
            "    def reset(self, seed=None, options=None): return 'go', {}\n"
            "    def step(self, action): return action + '!', 0.5, False, False, {}\n")
        said = self.run_verb(0, "check", self.config_with({"gym": f"{self.root}/echo.py:Echo"}))
        self.assertIn('"0" gets 0.5 and reads "0!", "I do not know." gets 0.5 and reads "I do not know.!"', said)
        self.assertIn("the method reset of", said)
        self.assertIn("try doing in __init__ what reset does", said)

    def test_a_config_that_cannot_be_is_refused(self):
        entry = {"gym": f"{GAME}:NumberGame"}
        path = self.config_with(entry)
        values = json.loads(path.read_text())
        values["reward"] = [entry, entry]
        path.write_text(json.dumps(values))
        self.assertIn("[reward] expected one environment at most", self.run_verb(2, "check", path))
        said = self.run_verb(2, "check", self.config_with({"gym": f"{GAME}:NumberGame", "turn_tokens": 13}))
        self.assertIn("[reward.turn_tokens] expected at most rollout.completion_tokens, 12, which all turns sh", said)
        said = self.run_verb(2, "check", self.config_with({"python": f"{GAME}:NumberGame"}))
        self.assertIn(f'got NumberGame, the class of an environment; try {{gym: "{GAME}:NumberGame"}}', said)
        path = self.config_with(entry, evaluation={"reward": [{"gym": f"{self.root}/other.py:Other"}]})
        self.assertIn("[evaluation] expected the environment of reward", self.run_verb(2, "check", path))
        values = json.loads(self.config_with(entry).read_text())
        path.write_text(json.dumps({**values, "devices": 2, "tp": 2}))
        self.assertIn("[reward.gym] expected policy to generate on ranks that have it whole",
                      self.run_verb(2, "train", path, "--output", self.root / "tp"))


if __name__ == "__main__":
    unittest.main()
