"""`collimate eval` and `collimate generate --output`: tables, JSON, pages, files that a killed command goes on with."""
import json
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from serve_support import PATIENCE, PROGRAM, WithModel, make_model

REWARD = """
def score(prompts, completions, **columns):
    return [{"score": c.count(str(a)), "answer": c[:1]} for c, a in zip(completions, columns["ground_truth"])]
"""


class WithRows(WithModel):
    def setUp(self):
        super().setUp()
        self.here = pathlib.Path(tempfile.mkdtemp(dir=self.root))
        self.data = self.here / "rows.jsonl"
        rows = ({"prompt": f"{i}:", "ground_truth": str(i % 10), "level": i} for i in range(12))
        self.data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        (self.here / "judge.py").write_text(REWARD)

    def run_verb(self, *words, code: int = 0):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr


class Eval(WithRows):
    def test_models_side_by_side(self):
        page = self.here / "page.html"
        asked = ("eval", self.model, self.model, "--data", self.data, "--reward", f"{self.here}/judge.py:score", "-n",
                 "4", "--temperature", "1", "--max-tokens", "8", "--seed", "1")
        document = json.loads(self.run_verb(*asked, "--json", "--output", page)[0])
        self.assertEqual(document["measure"], "completions")
        first, second = (model["metrics"] for model in document["models"])
        self.assertEqual(first, second)
        for name in ("reward/mean", "accuracy", "mean@4", "best@4", "pass@2", "pass@4", "maj@4"):
            self.assertEqual(first[name]["units"], 12, name)
        self.assertGreater(first["reward/mean"]["standard_error"], 0)
        difference = document["differences"][0]["metrics"]["reward/mean"]
        self.assertEqual((difference["value"], difference["standard_error"]), (0, 0))
        self.assertEqual(len(document["samples"][0]["models"][1]["outputs"]), 4)
        self.assertIn("<h2>Samples</h2>", page.read_text())
        table, _ = self.run_verb(*asked)
        self.assertIn("12 prompts, 48 samples, temperature 1, seed 1", " ".join(table.split()))
        self.assertRegex(table, r"mean@4 +[\d.]+ ± [\d.]+ +[\d.]+ ± [\d.]+ +\+0 ± 0\n")

    def test_what_is_wrong_is_named(self):
        refused = self.run_verb("eval", self.model, "--data", self.data, code=2)[1]
        self.assertIn("got prompts alone; try --reward exact", refused)
        refused = self.run_verb("eval", self.model, "--data", self.data, "--reward", "exact", "-n", "2", code=2)[1]
        self.assertIn("[-n] expected 1 with temperature 0, at which all samples of a prompt are equal, got 2; try "
                      "--temperature 1", refused)
        texts = self.here / "texts.jsonl"
        texts.write_text('{"text": "12:34"}\n')
        for flags, named in ((("-n", "2"), "-n"), (("--temperature", "1"), "--temperature"),
                             (("--top-p", "0.5"), "--top-p"),
                             (("--reward", "exact", "--measure", "perplexity"), "--reward"),
                             (("--output", self.here / "rows.jsonl"), "--output"),
                             (("--latent-cache", "true"), "--latent-cache"), (("--min-tokens", "500"), "--min-tokens")):
            refused = self.run_verb("eval", self.model, "--data", texts, *flags, code=2)[1]
            self.assertIn(f"[{named}] expected ", refused)
            self.assertNotIn("evaluation.", refused)
        refused = self.run_verb("eval", self.model, "--data", self.data, "--reward", "exact", "--latent-cache", "true",
                                code=2)[1]
        self.assertIn("latent_cache] expected a model with latent attention, got llama", refused)
        refused = self.run_verb("eval", self.model, "--data", self.data, "--measure", "completions", code=2)[1]
        self.assertIn("[--reward] expected a reward that judges completions, got none", refused)
        refused = self.run_verb("eval", self.model, "--data", "{path: a.jsonl, paht: b}", code=2)[1]
        self.assertIn("[--data] expected a key", refused)
        for outputs in (("a.txt",), ("a.html", "--output", "b.html")):
            refused = self.run_verb("eval", self.model, "--data", texts, "--output", *outputs, code=2)[1]
            self.assertIn("[--output] expected", refused)
        for data in (self.data, f"{{path: {self.data}, columns: {{prompt: prompt}}}}"):
            refused = self.run_verb("eval", self.model, "--data", data, "--reward", "exact", "--output", self.data,
                                    code=2)[1]
            self.assertIn(f"[--output] expected a file that is not read, got '{self.data}', --data", refused)
        refused = self.run_verb("eval", self.model, "--data", self.data, "--measure", "pass", code=2)[1]
        self.assertIn("[--measure] expected measure to be one of completions, perplexity, pairs, choices, marked, "
                      "steps",
                      refused)
        for name in ("org/none", "none"):
            refused = self.run_verb("eval", name, "--data", self.data, "--reward", "exact", code=2)[1]
            self.assertIn(f"[model {name}] expected a model directory, got nothing of that name; try "
                          "--download (it needs PyPI's "
                          f"huggingface_hub), or hf download {name}", refused)


    def test_completions_are_those_of_generate(self):
        """With one seed and equal options, text by text; eval writes them with the rows' columns."""
        flags = ("--data", self.data, "--reward", f"{self.here}/judge.py:score", "-n", "2", "--temperature", "1",
                 "--max-tokens", "8", "--seed", "3")
        drawn, judged = self.here / "drawn.jsonl", self.here / "judged.jsonl"
        self.run_verb("generate", self.model, *flags, "--output", drawn)
        self.run_verb("eval", self.model, *flags, "--output", judged, "--output", self.here / "page.html")
        lines = [json.loads(line) for line in drawn.read_text().splitlines()]
        self.assertEqual([(line["level"], line["sample"]) for line in lines],
                         [(i, s) for i in range(12) for s in (0, 1)])
        self.assertNotEqual(lines[0]["completion"], lines[1]["completion"])
        self.assertEqual([json.loads(line) for line in judged.read_text().splitlines()],
                         [{"model": str(self.model), **line} for line in lines])
        self.assertIn("<h2>Samples</h2>", (self.here / "page.html").read_text())

    def test_failed_rewards_are_told_once(self):
        (self.here / "fails.py").write_text("def score(prompts, completions, **columns):\n"
                                            "    return [1.0 if p == '3:' else None or 1 / 0 for p in prompts]\n")
        flags = ("--data", self.data, "--reward", f"{{python: '{self.here}/fails.py:score', on_error: drop}}")
        _, logged = self.run_verb("eval", self.model, *flags)
        self.assertEqual(logged.count("11 rewards failed"), 1)
        self.assertEqual(logged.count("reward/errors:"), 0, logged)


class RowsThatDoNotFit(WithRows):
    """A line that is no JSON, and a prompt that is longer than the model's 64 positions."""

    def setUp(self):
        super().setUp()
        self.model = make_model(self.here / "few", positions=64)
        self.long = "12" * 40
        self.data.write_text('{"prompt": "1:", "ground_truth": "1", "level": 1}\nnot json\n'
                             f'{{"prompt": "{self.long}", "ground_truth": "2", "level": 3}}\n'
                             '{"prompt": "4:", "ground_truth": "4", "level": 4}\n')
        self.kept = self.here / "kept.jsonl"
        self.flags = ("--data", self.data, "--reward", "{rule: regex, pattern: '1'}", "--max-tokens", "8",
                      "--temperature", "0", "--ignore-eos", "true")

    def drawn(self, *more, code: int = 0) -> tuple:
        """(the lines, what was logged)"""
        said = self.run_verb("generate", self.model, *self.flags, "--output", self.kept, *more, code=code)[1]
        return [json.loads(line) for line in self.kept.read_text().splitlines()] if self.kept.exists() else [], said

    def test_the_first_stops_and_says_how_to_go_on(self):
        for verb in ("generate", "eval"):
            said = self.run_verb(verb, self.model, *self.flags, code=2)[1].splitlines()[-1]
            self.assertTrue(said.startswith(f"[{self.data}:2] expected "), said)
            self.assertTrue(said.endswith("--bad-rows drop, which leaves out 1 of 4 rows"), said)
            said = self.run_verb(verb, self.model, *self.flags, "--bad-rows", "drop", code=2)[1].splitlines()[-1]
            self.assertEqual(said, f"[{self.data}:3] expected at most 63 tokens, as the model has 64 positions, got "
                                   "80; try --long-rows drop or truncate")
        said = self.run_verb("generate", self.model, "--prompt", "1:", "--long-rows", "drop", code=2)[1]
        self.assertIn("[--long-rows] expected --data FILE beside it", said)

    def test_they_are_left_out_and_counted(self):
        drop = ("--bad-rows", "drop", "--long-rows", "drop")
        lines, said = self.drawn(*drop)
        self.assertEqual([(line["level"], line["prompt"]) for line in lines], [(1, "1:"), (4, "4:")])
        self.assertIn("warning --data: 1 of 4 rows left out (--bad-rows drop); the first: [", said)
        self.assertIn("warning --data: 1 of 4 rows left out (--long-rows); the first: "
                      f"[{self.data}:3] expected at most 63 tokens, as the model has 64 positions, got 80", said)
        told = ("2 completions of 2 prompts; --data: 1 of 4 rows left out (--bad-rows drop); "
                "--data: 1 of 4 rows left out (--long-rows)\n")
        self.assertIn(f"{self.kept}: {told}", said)
        command = json.loads(pathlib.Path(f"{self.kept}.command.json").read_text())
        self.assertEqual([(rows["rows"], rows["of"]) for rows in command["left_out"]], [(1, 4), (1, 4)])
        said = self.drawn(*drop)[1]
        self.assertIn("2 of 2 completions are there", said)
        self.assertIn(told, said)
        self.assertIn("expected the command that began it, with long_rows \"drop\", got \"truncate\"",
                      self.drawn("--bad-rows", "drop", "--long-rows", "truncate", code=2)[1])
        printed, said = self.run_verb("generate", self.model, *self.flags, *drop)
        self.assertEqual(len(printed.splitlines()), 2)
        self.assertIn("generate: " + told, said)
        document = json.loads(self.run_verb("generate", self.model, *self.flags, *drop, "--json")[0])
        self.assertEqual(len(document["completions"]), 2)
        self.assertEqual([(rows["rows"], rows["of"]) for rows in document["left_out"]], [(1, 4), (1, 4)])
        document = json.loads(self.run_verb("eval", self.model, self.model, *self.flags, *drop, "--json")[0])
        for model in document["models"]:
            self.assertEqual(model["metrics"]["reward/mean"]["units"], 2)
            self.assertEqual([(rows["rows"], rows["of"]) for rows in model["left_out"]], [(1, 4), (1, 4)])

    def test_questions_with_choices_are_left_out_whole(self):
        questions = [{"prompt": "1:", "choices": ["2", "3"], "answer": 0},
                     {"prompt": "2:", "choices": ["2"], "answer": 0},
                     {"prompt": self.long, "choices": ["2", "3"], "answer": 1}]
        self.data.write_text("not json\n" + "".join(json.dumps(row) + "\n" for row in questions))
        asked = ("eval", self.model, "--data", self.data, "--measure", "choices", "--bad-rows", "drop")
        said = self.run_verb(*asked, code=2)[1].splitlines()[-1]
        self.assertEqual(said, f"[{self.data}:4] expected at most 64 tokens with each of the choices, as the model has "
                               "64 positions, got 81; try --long-rows drop")
        document, said = self.run_verb(*asked, "--long-rows", "drop", "--json")
        told = json.loads(document)["models"][0]
        self.assertEqual(told["metrics"]["acc"]["units"], 1)
        self.assertEqual([(rows["rows"], rows["of"]) for rows in told["left_out"]], [(1, 4)] * 3)
        self.assertEqual(said.count("warning --data: 1 of 4 rows left out"), 3)
        table = self.run_verb(*asked, "--long-rows", "drop")[0]
        self.assertIn("\n--data: 1 of 4 rows left out (--long-rows)\n", table)

    def test_rows_behind_the_first_examples_do_not_count(self):
        document = json.loads(self.run_verb("eval", self.model, *self.flags, "--bad-rows", "drop", "--examples", "1",
                                            "--json")[0])
        self.assertEqual(document["models"][0]["metrics"]["reward/mean"]["units"], 1)
        self.assertEqual(len(document["models"][0]["left_out"]), 1)  # the line that is no JSON

    def test_a_prompt_is_cut_so_that_a_completion_has_room(self):
        lines, said = self.drawn("--bad-rows", "drop", "--long-rows", "truncate", "--logprobs")
        self.assertIn("info    --data: 1 of 4 rows truncated (--long-rows truncate)", said)
        self.assertEqual([line["level"] for line in lines], [1, 3, 4])
        self.assertEqual([len(line["token_ids"]) for line in lines], [8, 8, 8])
        self.data.write_text(json.dumps({"prompt": self.long[-56:], "ground_truth": "2", "level": 3}) + "\n")
        self.kept.unlink()
        self.assertEqual(self.drawn("--logprobs")[0][0]["token_ids"], lines[1]["token_ids"])

    def test_models_that_leave_out_other_rows_are_compared_by_the_same_ones(self):
        small = make_model(self.here / "small", positions=16)
        rows = [{"prompt": "3" * length + ":", "completion": "1" * (1 + length % 3)} for length in (2, 20, 4, 30, 6)]
        self.data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        document = json.loads(self.run_verb("eval", self.model, small, "--data", self.data, "--long-rows", "drop",
                                            "--json")[0])
        self.assertEqual([model["metrics"]["perplexity"]["units"] for model in document["models"]], [5, 3])
        difference = document["differences"][0]["metrics"]["perplexity"]
        self.assertEqual((difference["units"], difference["value"]), (3, 0), "the weights are equal")


class GenerateRows(WithRows):
    def asked(self, output, *more):
        return ("generate", self.model, "--data", self.data, "--output", output, "-n", "3", "--max-tokens", "8",
                "--seed", "1", "--reward", f"{self.here}/judge.py:score", *more)

    def test_rows_keep_their_columns(self):
        self.run_verb(*self.asked(self.here / "out.jsonl", "--logprobs"))
        rows = [json.loads(line) for line in (self.here / "out.jsonl").read_text().splitlines()]
        self.assertEqual([(row["level"], row["sample"]) for row in rows], [(i, s) for i in range(12) for s in range(3)])
        for row in rows:
            self.assertEqual(row["prompt"], f"{row['level']}:")
            self.assertEqual(row["reward"], row["completion"].count(row["ground_truth"]))
            self.assertEqual(len(row["logprobs"]), len(row["token_ids"]))
            self.assertIn(row["finish"], ("stop", "length"))

    def test_a_column_of_the_same_name_is_kept_beside_it(self):
        self.data.write_text('{"prompt": "1:", "completion": "22"}\n')
        self.run_verb("generate", self.model, "--data", self.data, "--output", self.here / "out.jsonl",
                      "--max-tokens", "3", "--ignore-eos", "true")
        row = json.loads((self.here / "out.jsonl").read_text())
        self.assertEqual((row["data_completion"], row["finish"]), ("22", "length"))
        self.assertNotEqual(row["completion"], "22")
        self.assertNotIn("reward", row)

    def test_a_killed_command_goes_on_with_the_same_bits(self):
        whole, killed = self.here / "whole.jsonl", self.here / "killed.jsonl"
        self.run_verb(*self.asked(whole))
        lines = whole.read_bytes().splitlines(keepends=True)
        self.run_verb(*self.asked(killed))
        killed.write_bytes(b"".join(lines[:7]) + lines[7][:20])  # what a kill leaves
        _, logged = self.run_verb(*self.asked(killed))
        self.assertIn("7 of 36 completions are there", logged)
        self.assertEqual(killed.read_bytes(), whole.read_bytes())
        self.assertIn("36 of 36 completions are there", self.run_verb(*self.asked(killed))[1])

    def test_a_kill_at_any_moment(self):
        rows = ({"prompt": f"{i}:", "ground_truth": str(i % 10), "level": i} for i in range(400))
        self.data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        whole, killed = self.here / "whole.jsonl", self.here / "killed.jsonl"
        self.run_verb(*self.asked(whole))
        process = subprocess.Popen([PROGRAM, *map(str, self.asked(killed))], stderr=subprocess.DEVNULL)
        while process.poll() is None and not (killed.exists() and killed.stat().st_size > 0):
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
        self.run_verb(*self.asked(killed))
        self.assertEqual(killed.read_bytes(), whole.read_bytes())

    def test_another_command_is_refused(self):
        output = self.here / "out.jsonl"
        self.run_verb(*self.asked(output))
        before = output.read_bytes()
        self.assertIn("expected the command that began it, with sampling.temperature 1.0, got 0.5; try another",
                      self.run_verb(*self.asked(output, "--temperature", "0.5"), code=2)[1])
        self.data.write_text(self.data.read_text().replace('"9:"', '"8:"'))
        self.assertIn("with rows.fingerprint ", self.run_verb(*self.asked(output), code=2)[1])
        self.assertEqual(output.read_bytes(), before)
        mine = self.here / "mine.jsonl"
        mine.write_text("mine\n")
        self.assertIn("expected a file that this verb began", self.run_verb(*self.asked(mine), code=2)[1])

    def test_rewards_without_a_file(self):
        asked = ("generate", self.model, "--data", self.data, "--max-tokens", "8", "--reward",
                 "{rule: regex, pattern: '^[0-4]'}")
        document = json.loads(self.run_verb(*asked, "--json")[0])
        for one in document:
            self.assertEqual(one["reward"], float(one["completion"][:1] in tuple("01234")))
        self.assertIn("[0.0] reward ", self.run_verb(*asked)[0])
        output = self.here / "x"
        refused = self.run_verb("generate", self.model, "--prompt", "1:", "--output", output, code=2)[1]
        self.assertIn("[--output] expected --data FILE beside it, whose rows are completed, got none", refused)


if __name__ == "__main__":
    unittest.main()
