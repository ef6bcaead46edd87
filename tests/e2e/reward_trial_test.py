"""Rewards that raise: what a person sees of it, once, before anything is drawn or in the run."""
import json
import pathlib
import subprocess
import tempfile
import unittest

from python_support import PATIENCE, PROGRAM, config, problems, write_model

RAISES = """
def score(prompts, completions, ground_truth, **columns):
    if any(c != t for c, t in zip(completions, ground_truth)):
        raise ValueError("another answer")
    return [1.0] * len(completions)
def never(prompts, completions, **columns):
    return [columns["nothing"] for c in completions]
"""
REFUSED = ("expected a reward, got KeyError: 'nothing'; the data has the columns "
           "ground_truth, prompt; try mending the reward, or the rows\n")


class RewardTrial(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.model = write_model(self.root / "start")
        self.data = self.root / "rows.jsonl"
        self.data.write_text("".join(json.dumps(row) + "\n" for row in problems(8)))
        (self.root / "reward.py").write_text(RAISES)
        self.more = {}  # of the config

    def run_verb(self, code: int, *words):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr

    def train(self, code: int, output: str, function: str, **sections) -> str:
        values = config(self.model, data={"train": str(self.data), **sections}, run={"iterations": 1})
        on_error = "drop" if code == 0 else "stop"
        values.update(self.more)
        values["reward"] = {"python": f"{self.root}/reward.py:{function}", "on_error": on_error}
        (self.root / "run.yaml").write_text(json.dumps(values))
        return self.run_verb(code, "train", self.root / "run.yaml", "--output", self.root / output)[1]

    def assert_once(self, text: str, part: str) -> None:
        self.assertEqual(text.count(part), 1, text)

    def test_a_run_shows_a_traceback_once(self):
        said = self.train(1, "stopped", "score")
        self.assert_once(said, 'reward.py", line 4, in score\n    raise ValueError("another answer")\n')
        self.assert_once(said, "\nprompt: ")
        self.assert_once((self.root / "stopped/logs/rank-0.log").read_text(), "\nprompt: ")

    def test_a_run_in_processes_shows_it_once(self):
        with open(self.root / "reward.py", "a") as file:  # each worker's process meets it, and the trial does not
            file.write("def most(prompts, completions, **columns):\n"
                       "    if any(p[0] > '0' for p in prompts): raise ValueError('too large')\n"
                       "    return [float(len(c)) for c in completions]\n")
        self.more = {"cluster": "local-processes", "devices": 2, "run": {"iterations": 2, "threads": 1}}
        said = self.train(0, "processes", "most", eval=str(self.data))
        self.assert_once(said, "ValueError: too large\nprompt: ")
        self.assert_once((self.root / "processes/logs/rank-0.log").read_text(), "ValueError: too large\nprompt: ")
        self.assertNotIn("told once", said)

    def test_a_run_shows_it_once_where_an_evaluation_raises_it_too(self):
        with open(self.root / "reward.py", "a") as file:  # the first row's samples all get a value
            file.write("def some(prompts, completions, **columns):\n"
                       "    if any(p[0] > '2' for p in prompts): raise ValueError('too large')\n"
                       "    return [float(len(c)) for c in completions]\n")
        said = self.train(0, "ended", "some", eval=str(self.data))
        self.assert_once(said, "ValueError: too large\nprompt: ")

    def test_a_reward_that_judges_nothing_is_refused_with_its_traceback(self):
        said = self.train(2, "refused", "never")
        self.assert_once(said, 'reward.py", line 7, in never\n')
        self.assert_once(said, "\nKeyError: 'nothing'\nprompt: ")
        self.assertTrue(said.endswith(f"[reward never on {self.data}:1] {REFUSED}"), said)
        self.assertFalse((self.root / "refused").exists())

    def test_eval_and_generate_refuse_it_before_they_draw(self):
        model = self.trained()
        reward = f"{self.root}/reward.py:never"
        for verb, *flags in (["eval"], ["generate"], ["generate", "--output", self.root / "out.jsonl"]):
            printed, said = self.run_verb(2, verb, model, "--data", self.data, "--reward", reward, "--max-tokens", "6",
                                          *flags)
            self.assertEqual(printed, "")
            self.assert_once(said, 'reward.py", line 7, in never\n')
            self.assert_once(said, "\nKeyError: 'nothing'\nprompt: ")
            self.assertTrue(said.endswith(f"[reward never on {self.data}:1] {REFUSED}"), said)
            self.assertNotIn("generate  ", said)
        _, said = self.run_verb(2, "generate", model, "--prompt", "12=", "--reward", "exact", "--max-tokens", "6")
        self.assertTrue(said.endswith(
            "[reward exact on --prompt] expected rows that it can judge, got 1 of 1 that fail; --prompt: [reward] "
            'expected a column "ground_truth" in the row, got none; the data has the columns prompt; try rows that '
            "have it (a data set's columns: {THEIRS: ground_truth} renames one), or another rule\n"), said)

    def test_a_later_error_of_eval_is_told_without_parts_of_the_program(self):
        model = self.trained()
        for verb in ("eval", "generate"):
            _, said = self.run_verb(1, verb, model, "--data", self.data, "--reward", f"{self.root}/reward.py:score",
                                    "--max-tokens", "6")
            self.assert_once(said, 'raise ValueError("another answer")\n')
            self.assertTrue(said.endswith("[reward score] ValueError: another answer; try mending the reward, or "
                                          "on_error: drop, or a value, for it\n"), said)

    def trained(self) -> pathlib.Path:
        values = config(self.model, "sft", data={"train": str(self.root / "answers.jsonl")}, run={"iterations": 1})
        (self.root / "answers.jsonl").write_text("".join(
            json.dumps({"prompt": row["prompt"], "completion": row["ground_truth"]}) + "\n" for row in problems(8)))
        (self.root / "sft.yaml").write_text(json.dumps(values))
        self.run_verb(0, "train", self.root / "sft.yaml", "--output", self.root / "sft")
        return self.root / "sft/model"


if __name__ == "__main__":
    unittest.main()
