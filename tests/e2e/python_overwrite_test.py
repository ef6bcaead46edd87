"""collimate.train again with the same output and another config or other rows."""
import pathlib
import tempfile
import unittest

from python_support import config, demonstrations, problems, write_model

import collimate


def first_digit(completions, **columns):
    return [float(c[:1] <= "4") for c in completions]


class Overwrite(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.model = write_model(self.root / "start")

    def train(self, rows=40, reward=first_digit, seed=7, **options):
        return collimate.train(config(self.model, run={"iterations": 2, "seed": seed}), problems(rows), [reward],
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
