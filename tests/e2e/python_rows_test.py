"""Rows that collimate.generate and collimate.evaluate cannot use."""
import pathlib
import tempfile
import unittest

from python_support import config, problems, write_model

import collimate


def low(prompts, completions, **columns):
    return [float(c[:1] <= "4") for c in completions]


class Rows(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_rows_that_cannot_be_used_are_left_out(self):
        trained = collimate.train(config(write_model(self.root / "start"), run={"iterations": 1}), problems(8), [low],
                                  output=self.root / "run").model
        rows = [*problems(1), {"prompt": 5}, {"prompt": "1" * 40, "ground_truth": "1"}]
        with self.assertRaisesRegex(collimate.InputError, r"^\[prompts row 2 column prompt\] .*bad_rows=drop, which "
                                                          "leaves out 1 of 3 rows"):
            collimate.generate(trained, rows)
        with self.assertRaisesRegex(collimate.InputError, r"^\[data row 3\] expected at most 31 tokens, as the model "
                                                          "has 32 positions, got 40; try long_rows=drop or truncate"):
            collimate.evaluate(trained, rows, [low], bad_rows="drop")
        drop = {"bad_rows": "drop", "long_rows": "drop", "max_tokens": 2}
        self.assertEqual([made["prompt"] for made in collimate.generate(trained, rows, **drop)], [rows[0]["prompt"]])
        left_out = collimate.evaluate(trained, rows, [low], **drop)["models"][0]["left_out"]
        self.assertEqual([(told["data"], told["rows"], told["of"]) for told in left_out], [("data", 1, 3)] * 2)
        self.assertIn("; the first: [data row 3] expected ", left_out[1]["rest"])
        with self.assertRaisesRegex(collimate.InputError, "expected long_rows to be one of"):
            collimate.evaluate(trained, rows, [low], long_rows="cut")


if __name__ == "__main__":
    unittest.main()
