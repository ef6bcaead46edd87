"""bench/learning tries every algorithm that the program has, and judges what they reach."""
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from contextlib import redirect_stdout
from unittest import mock

PROGRAM = pathlib.Path(os.environ["COLLIMATE_BIN_DIR"]).resolve() / "collimate"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/learning"))
import algorithms
import run


def named_by_help(word):
    text = subprocess.run([PROGRAM, "help", word], capture_output=True, text=True, check=True).stdout
    return {match[1] for match in re.finditer(r"^  (\w+) {1,30}[A-Z]", text, re.MULTILINE)}


def said(key):
    return {trial.algorithm[key] for trial in algorithms.trials() if key in trial.algorithm}


def row(seed, after, name="grpo", **more):
    return {"kind": "grpo", "name": name, "seed": seed, "problem": "", "before": 0.5, "after": after, "seconds": 20,
            "iterations": 60, **more}


class Trials(unittest.TestCase):
    def test_every_algorithm_is_tried(self):
        # The first loss and advantage of a recipe need no name; "sft" is a part of others, and "value" belongs to PPO.
        unnamed = {"nll", "bradley_terry", "step_logistic", "value", "sft"}
        self.assertEqual(named_by_help("losses") - said("loss_type"), unnamed)
        self.assertEqual(named_by_help("advantages") - said("advantage"), {"group", "gae"})

    def test_names_differ(self):
        names = [(trial.kind, trial.name) for trial in algorithms.trials()]
        self.assertEqual(len(names), len(set(names)))


class Table(unittest.TestCase):
    def lines(self, *rows):
        return [line for line in run.table(list(rows)) if line.startswith("| grpo")]

    def test_an_effect_is_above_twice_the_spread_of_runs_that_stand_still(self):
        still = [row(1, 0.50, ""), row(2, 0.53, "")]
        self.assertIn("| +7.5 | 6.0 | yes |", self.lines(*still, row(1, 0.58), row(2, 0.60))[0])
        self.assertIn("| +5.5 | 6.0 | **no** |", self.lines(*still, row(1, 0.56), row(2, 0.58))[0])
        self.assertIn("**no**", self.lines(*still, row(1, 0.40), row(2, 0.40))[0])

    def test_a_failure_is_shown(self):
        failed = {"kind": "grpo", "name": "grpo", "seed": 2, "problem": "[reward x] died"}
        lines = run.table([row(1, 0.5, ""), row(1, 0.9), failed])
        self.assertTrue(any("**failed**: [reward x] died" in line for line in lines), lines)
        self.assertTrue(lines[-1].startswith("0 of 1 algorithms learn; 3 runs"), lines)


class Reduced(unittest.TestCase):
    def test_trials_run_and_are_not_repeated(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text(f"before\n{run.BEGIN}\nold\n{run.END}\nbehind\n")
            words = ["run.py", str(PROGRAM), "--output", f"{folder}/out", "--results", f"{folder}/results", "--reduced",
                     "--seeds", "1", "--jobs", "2", "--only", "sft nll", "advantage opo", "--page", str(page)]
            says = []
            for _ in range(2):
                with mock.patch.object(sys, "argv", words), redirect_stdout(io.StringIO()) as out:
                    run.main()
                says.append(out.getvalue())
            results = run.rows_of(pathlib.Path(folder) / "results")
            text = page.read_text()
        self.assertEqual(sorted((one["kind"], one["name"]) for one in results),
                         [("grpo", ""), ("grpo", "advantage opo"), ("sft", ""), ("sft", "nll")])
        self.assertTrue(all(one["problem"] == "" and one["iterations"] == 2 for one in results), results)
        self.assertEqual(says[1], says[0][says[0].index("| algorithm"):])  # the second call runs nothing
        self.assertTrue(text.startswith("before\n") and text.endswith("behind\n") and "| nll |" in text, text)
        self.assertNotIn("old", text)


if __name__ == "__main__":
    unittest.main()
