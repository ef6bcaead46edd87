"""collimate.train again with the same output and another config or other rows."""
import pathlib
import tempfile
import unittest

from python_support import config, demonstrations, problems, write_model

import collimate
from collimate.rows import set_aside


def first_digit(completions, **columns):
    return [float(c[:1] <= "4") for c in completions]


class Overwrite(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.model = write_model(self.root / "start")

    def train(self, rows=40, reward=first_digit, seed=7, **options):
        data = problems(rows) if isinstance(rows, int) else rows
        return collimate.train(config(self.model, run={"iterations": 2, "seed": seed}), data, [reward],
                               output=self.root / "run", **options)

    def test_begins_anew_with_other_rows(self):
        first = self.train()
        (first.output / "notes.txt").write_text("mine")
        for seed, rows, words in ((8, 40, "run.seed: 7 -> 8.*--overwrite"), (7, 41, "try another output")):
            with self.assertRaisesRegex(collimate.InputError, words):
                self.train(rows=rows, seed=seed)
        other = self.train(rows=41, seed=8, overwrite=True)
        self.assertEqual((other.output, other.summary["seed"], len(other.metrics)), (first.output, 8, 2))
        self.assertEqual(len((other.output / "rows/train.jsonl").read_text().splitlines()), 41)
        self.assertEqual((other.output / "notes.txt").read_text(), "mine")

    def test_what_is_refused_changes_nothing(self):
        first = self.train()
        before = {name: (first.output / name).read_bytes()
                  for name in ("rows/train.jsonl", "summary.json", "config.resolved.yaml")}
        refused = ({"rows": 41, "overrides": {"run.iterations": 0}},  # by the config
                   {"rows": [{"prompt": "not a digit=", "ground_truth": "1"}]},  # by the model's tokenizer
                   {"rows": 41, "resume": str(first.output)})  # by what --overwrite would remove
        for options in refused:
            with self.assertRaises(collimate.InputError, msg=options):
                self.train(overwrite=True, **options)
            for name, content in before.items():
                self.assertEqual((first.output / name).read_bytes(), content, f"{options}: {name}")
            self.assertEqual([file.name for file in (first.output / "rows").iterdir()], ["train.jsonl"])
        self.assertEqual(self.train().summary, first.summary)

    def test_rows_set_aside_by_a_killed_process_come_back(self):
        first = self.train()
        rows = first.output / "rows/train.jsonl"
        content = rows.read_bytes()
        set_aside(rows)
        rows.write_text("others")  # and the process is killed
        self.assertEqual(self.train().summary, first.summary)
        self.assertEqual(rows.read_bytes(), content)

    def test_a_run_that_learned_nothing_makes_way_for_other_rows(self):
        calls = []

        def late(completions, **columns):
            calls.append(len(completions))
            return [1 / (len(calls) == 1)] * len(completions)  # the first is the trial

        with self.assertRaises(collimate.RunError):
            self.train(reward=late)
        made = self.train(rows=41)
        self.assertEqual((made.iterations, made.diverged), (2, ""))

    def test_a_run_says_that_it_has_diverged(self):
        values = config(self.model, "sft", run={"iterations": 14}, train={"learning_rate": 3})
        made = collimate.train(values, demonstrations(40), output=self.root / "run")
        self.assertRegex(made.diverged, "^the loss has risen from ")


if __name__ == "__main__":
    unittest.main()
