"""Which samples the tables of bench/peers are of."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/peers"))
import compare


class Runs(unittest.TestCase):
    def setUp(self):
        self.kept = compare.OUT, compare.RUN
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        compare.OUT = pathlib.Path(directory.name)
        old = {"part": "sft", "side": "ours fp32", "seconds": 9.0}  # as written before calls were told apart
        (compare.OUT / "results.jsonl").write_text(json.dumps(old) + "\n")
        for compare.RUN, seconds in (("yesterday", 5.0), ("today", 1.0), ("today", 2.0)):
            compare.record("sft", "ours fp32", {"seconds": seconds})

    def tearDown(self):
        compare.OUT, compare.RUN = self.kept

    def seconds(self, **how):
        return [s["seconds"] for s in compare.samples_of("sft", **how)["ours fp32"]]

    def test_this_call_unless_all_are_asked_for(self):
        self.assertEqual(self.seconds(), [1.0, 2.0])
        self.assertEqual(self.seconds(every=True), [9.0, 5.0, 1.0, 2.0])

    def test_the_table_says_how_many(self):
        for every, row in ((False, "| 1.500 | 1.000 .. 2.000 | 2 |"), (True, "| 3.500 | 1.000 .. 9.000 | 4 |")):
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown):
                compare.table("sft", every)
            self.assertIn("| ours fp32 " + row, shown.getvalue())


if __name__ == "__main__":
    unittest.main()
