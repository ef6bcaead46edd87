"""The verb `bench planner` as a user calls it: a small file of its own, and the shared corpus where it is at hand."""
import csv
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path(os.environ["COLLIMATE_BIN_DIR"]).resolve() / "collimate"
CORPUS = pathlib.Path(__file__).resolve().parents[3] / "shared" / "reference" / "published_results.csv"
NAMES = ("id paper algo actor critic ref reward n_gpus gpu_type batch prompt_len gen_len system baseline metric value "
         "value_hi unit phase placement parallelism note").split()
RUN = {"id": "1", "paper": "P", "algo": "PPO", "actor": "7", "critic": "7", "ref": "7", "reward": "7", "n_gpus": "16",
       "gpu_type": "A100-80GB", "batch": "512", "prompt_len": "128", "gen_len": "384", "system": "ReaL",
       "metric": "time", "value": "30", "unit": "s/iteration", "phase": "iteration", "placement": "searched (MCMC)"}


def bench(path, *words):
    return subprocess.run([PROGRAM, "bench", "planner", "--results", str(path), *words], capture_output=True,
                          text=True, check=False)


class OwnFile(unittest.TestCase):
    def results(self, *rows):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows.csv"
            with open(path, "w", encoding="utf-8-sig", newline="") as file:
                writer = csv.DictWriter(file, NAMES)
                writer.writeheader()
                writer.writerows({**RUN, **row} for row in rows)
                file.write("too,few\n")
            done = bench(path, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_wrong_input_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows.csv"
            path.write_text(",".join(NAMES) + "\n" + ",".join(RUN.get(name, "") for name in NAMES) + "\n", "utf-8")
            for words, error in ((["--set", "phase_second=1"], "try 'phase_seconds'"),
                                 (["--fit-backend", "reel"], "real"), (["--jsn"], "try --json"),
                                 (["--device", "A200-80.flops=1e14"], "try 'A100-80'")):
                done = bench(path, *words)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn(error, done.stderr)
            self.assertIn("no such file", bench(pathlib.Path(folder) / "none.csv").stderr)
            # Outside of a checkout there is nothing that reads the rows.
            alone = pathlib.Path(folder) / "collimate"
            shutil.copy(PROGRAM, alone)
            done = subprocess.run([alone, "bench", "planner", "--results", path], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("[bench planner] expected bench/published/report.py in a directory above", done.stderr)

    def test_a_question_that_cannot_be_read_is_refused_in_a_line(self):
        for question in ("{", "[]", '{"devices": []}'):
            done = subprocess.run([PROGRAM.with_name("bench_published")], input=question, capture_output=True,
                                  text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertRegex(done.stderr, r"\A\[bench_published\] .*\n\Z")

    def test_a_file_of_others_has_no_fitted_rows_but_nearest_ones(self):
        found = self.results({}, {"id": "2", "placement": "ratio 1:1:1"}, {"id": "3", "n_gpus": "many"})
        self.assertEqual([row["id"] for row in found["rows"]], ["1"])
        self.assertFalse(found["rows"][0]["fitted"])
        self.assertTrue(found["rows"][0]["may_fit"])
        self.assertNotEqual(found["rows"][0]["nearest_fitted"], "")
        reasons = {row["id"]: row["reason"] for row in found["not_modelled"]}
        self.assertIn("ratio 1:1:1", reasons["2"])
        self.assertIn("many", reasons["3"])
        self.assertIn("2 fields instead of 22", reasons["too"])


@unittest.skipUnless(CORPUS.exists(), f"no {CORPUS}: the corpus of published results is not part of the repository")
class Corpus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = bench(CORPUS, "--json")
        assert done.returncode == 0, done.stderr
        cls.found = json.loads(done.stdout)
        with open(CORPUS, encoding="utf-8", newline="") as file:
            cls.rows = {row["id"]: row for row in csv.DictReader(file)}

    def median(self, chosen):
        errors = [abs(row["error"]) for row in self.found["rows"]
                  if row["metric"] != "status" and chosen(self.rows[row["id"]])]
        self.assertGreater(len(errors), 5)
        return statistics.median(errors)

    def test_four_fifths_of_the_times_and_rates_are_predicted(self):
        timed = [row for row in self.rows.values() if row["metric"] in ("time", "throughput")]
        predicted = [row for row in self.found["rows"] if row["metric"] in ("time", "throughput")]
        self.assertGreaterEqual(len(predicted), 0.8 * len(timed))
        self.assertEqual(len(self.found["rows"]) + len(self.found["not_modelled"]), len(self.rows))
        self.assertTrue(all(math.isfinite(row["predicted"]) for row in self.found["rows"]))

    def test_the_shipped_list_of_fitted_rows_is_what_a_fit_would_take(self):
        for row in self.found["rows"]:
            one_value = row["published"] > 0 and row["metric"] != "status"
            self.assertEqual(row["fitted"], row["may_fit"] and one_value, row["id"])

    def test_targets_that_are_reached_stay_reached(self):
        sources = {source["source"]: source for source in self.found["sources"]}
        self.assertLessEqual(sources["ReaL/ReaLHF"]["median_error"], 0.15)
        self.assertGreaterEqual(sources["ReaL/ReaLHF"]["rank_correlation"], 0.9)
        self.assertLessEqual(sources["ChatLearn"]["median_error"], 0.20)
        self.assertEqual(sources["ChatLearn"]["status_right"], sources["ChatLearn"]["status_rows"])
        rates = ("generation", "training", "effective")
        for phase in rates:
            self.assertLessEqual(self.median(lambda row, phase=phase: row["unit"] == "TFLOP/s/GPU"
                                             and row["phase"] == phase), 0.25, phase)
        mixtures = ("DeepSeek", "B3A", "235B")
        nemo = {True: [], False: []}
        for row in self.found["rows"]:
            if row["paper"].startswith("NeMo-RL"):
                nemo[any(name in self.rows[row["id"]]["actor"] for name in mixtures)].append(abs(row["error"]))
        self.assertLessEqual(statistics.median(nemo[True]), 0.35)
        self.assertLessEqual(statistics.median(nemo[False]), 0.20)

    def test_asynchronous_training_of_verl(self):
        found = {row["id"]: row for row in self.found["rows"]}
        steps = [row for row in self.rows.values()
                 if row["paper"] == "verl docs" and row["phase"] == "step" and row["id"] in found]
        apart = [row["id"] for row in steps if row["placement"] not in ("", "colocate")]
        self.assertLessEqual(statistics.median(abs(found[name]["error"]) for name in apart), 0.20)
        # Every run on devices of its own beside the same run colocated; two of them are 1 % apart as published.
        pairs = [(one["id"], name) for one in steps if one["placement"] == "colocate" for name in apart
                 if all(one[key] == self.rows[name][key] for key in ("actor", "n_gpus", "batch", "gen_len"))
                 and self.rows[name]["system"].startswith("verl") and "=" not in self.rows[name]["placement"]]
        self.assertGreaterEqual(len(pairs), 8)
        right = [pair for pair in pairs if (found[pair[0]]["published"] > found[pair[1]]["published"])
                 == (found[pair[0]]["predicted"] > found[pair[1]]["predicted"])]
        self.assertGreaterEqual(len(right), len(pairs) - 1)

    def test_openrlhf_is_faster_than_deepspeed_chat_where_its_paper_says_so(self):
        found = [row for row in self.found["rows"] if row["paper"] == "OpenRLHF" and row["metric"] == "speed-up"]
        self.assertTrue(found)
        for row in found:
            self.assertGreater(row["predicted"], 1, row["id"])


if __name__ == "__main__":
    unittest.main()
