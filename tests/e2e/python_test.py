"""collimate.train and its like in this process: what they give, and how they end."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
import unittest.mock

from python_support import PACKAGE, PATIENCE, PROGRAM, config, demonstrations, of_numbers, problems, write_model

import collimate

REWARD = """
def low(prompts, completions, ground_truth, **columns):
    assert len(prompts) == len(ground_truth)
    return [float(c[:1] <= "4") + 0.25 * (len(c) % 3) for c in completions]
"""


def low(prompts, completions, ground_truth, **columns):
    return [float(c[:1] <= "4") + 0.25 * (len(c) % 3) for c in completions]


def ratio(prompts, completions, **columns):
    return [1 / (len(c) - len(c)) for c in completions]


# Calls a verb, and says so from within it.
ENDLESS = """
import sys, types
sys.path.insert(0, sys.argv[1])
import collimate
from collimate import api

native = api.native


def {verb}(*arguments):
    print("begun", flush=True)
    return native.{verb}(*arguments)


api.native = types.SimpleNamespace({verb}={verb})
rewards = [{{"rule": "regex", "pattern": "1"}}]
try:
    collimate.{verb}({call})
except KeyboardInterrupt as stop:
    print("stopped:", stop)
"""


class WithTask(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.model = write_model(cls.root / "start")

    def output(self) -> pathlib.Path:
        return self.root / self.id().rpartition(".")[2]

    def train(self, values: dict, data=None, **options):
        return collimate.train(values, problems(40) if data is None else data, options.pop("rewards", [low]),
                               output=options.pop("output", self.output()), **options)


class Evaluate(WithTask):
    def test_numbers_are_those_of_the_command_line(self):
        model = self.train(config(self.model, run={"iterations": 1})).model
        data, reward = self.root / "eval.jsonl", self.root / "reward.py"
        data.write_text("".join(json.dumps(row) + "\n" for row in problems(8)))
        reward.write_text(REWARD)
        done = subprocess.run([PROGRAM, "eval", model, "--data", data, "--reward", f"{reward}:low", "-n", "4",
                               "--temperature", "1", "--max-tokens", "6", "--json"], capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        ours = collimate.evaluate(model, problems(8), low, n=4, temperature=1, max_tokens=6)
        theirs = json.loads(done.stdout)
        self.assertEqual(ours["models"][0]["metrics"], theirs["models"][0]["metrics"])
        self.assertIn("pass@4", ours["models"][0]["metrics"])

    def test_wrong_input(self):
        with self.assertRaisesRegex(collimate.InputError, "measure"):
            collimate.evaluate(self.model, problems(2), low, measure="everything")


class Generate(WithTask):
    def test_forms_and_beams(self):
        model = self.train(config(self.model, run={"iterations": 1})).model
        made = collimate.generate(model, ["12="], n=4, max_tokens=9, regex="[0-4]{1,3}=")
        for one in made:
            self.assertRegex(one["completion"], "^[0-4]{1,3}=$")
        number = {"type": "integer", "minimum": 10, "maximum": 40}
        for schema in (number, json.dumps(number)):
            for one in collimate.generate(model, ["12="], n=4, max_tokens=9, json_schema=schema):
                self.assertIn(json.loads(one["completion"]), range(10, 41))
        best = collimate.generate(model, ["12="], n=2, max_tokens=5, num_beams=3, early_stopping=True, logprobs=True)
        self.assertGreater(best[0]["score"], best[1]["score"])
        self.assertAlmostEqual(best[0]["score"], sum(best[0]["logprobs"]) / len(best[0]["logprobs"]), 4)
        with self.assertRaisesRegex(collimate.InputError, "look-around"):
            collimate.generate(model, ["12="], regex="(?=1)1")


class Train(WithTask):
    def test_numbers_are_those_of_the_command_line(self):
        """A config, rows and a reward in files, and the same in memory, with held-out rows."""
        for name, rows in (("train", problems(40)), ("eval", problems(8, 40))):
            (self.root / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (self.root / "reward.py").write_text(REWARD)
        values = config(self.model, data={n: str(self.root / f"{n}.jsonl") for n in ("train", "eval")})
        values["reward"] = [{"python": f"{self.root}/reward.py:low"}]
        (self.root / "run.yaml").write_text(json.dumps(values))
        theirs = self.root / "command-line"
        done = subprocess.run([PROGRAM, "train", self.root / "run.yaml", "--output", theirs], capture_output=True,
                              text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)

        ours = collimate.train(config(self.model), {"train": problems(40), "eval": problems(8, 40)}, [low],
                               output=self.output())
        lines = [json.loads(line) for line in (theirs / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([of_numbers(metrics) for metrics in ours.metrics], [of_numbers(line) for line in lines])
        self.assertIn("rewards/low/mean", ours.metrics[1])
        for file in ("model/model.safetensors", "samples/step-000001.jsonl"):
            self.assertEqual((ours.output / file).read_bytes(), (theirs / file).read_bytes(), file)
        self.assertEqual(ours.iterations, 3)
        self.assertEqual(ours.last_evaluation, {k: v for k, v in lines[-1].items() if k in ours.last_evaluation})
        self.assertTrue(ours.report.exists())

    def test_a_file_and_overrides(self):
        (self.root / "sft.yaml").write_text(json.dumps(config(self.model, "sft")))
        result = collimate.train(self.root / "sft.yaml", demonstrations(40), output=self.output(),
                                 overrides={"run.iterations": 2, "models.policy.initializer_std": 0.2})
        self.assertEqual(result.iterations, 2)
        self.assertIn("initializer_std: 0.2", (result.output / "config.resolved.yaml").read_text())

    def test_without_an_output_it_is_a_new_directory(self):
        result = collimate.train(config(self.model, "sft", run={"iterations": 1}), demonstrations(10))
        self.assertEqual(result.output.parent, pathlib.Path(tempfile.gettempdir()))
        self.assertTrue((result.model / "config.json").exists())

    def test_verls_shape_and_entries_of_a_config(self):
        def compute_score(data_source, solution_str, ground_truth, extra_info=None):
            return {"score": 1.0 if solution_str == ground_truth else 0.5}

        rewards = [{"function": compute_score, "weight": 0.5}, {"rule": "exact"},
                   lambda prompts, completions: [0.0] * len(prompts)]
        result = self.train(config(self.model, run={"iterations": 1}), rewards=rewards)
        metrics = result.metrics[0]
        self.assertGreaterEqual(metrics["rewards/compute_score/mean"], 0.5)
        self.assertEqual(metrics["rewards/reward/mean"], 0.0)
        self.assertAlmostEqual(metrics["critic/rewards/mean"],
                               0.5 * metrics["rewards/compute_score/mean"] + metrics["rewards/exact/mean"], places=5)


class Callbacks(WithTask):
    def test_they_get_each_line_and_may_stop(self):
        told = []

        def stop(metrics):
            told.append(metrics)
            return collimate.STOP if metrics["step"] == 2 else None

        result = self.train(config(self.model, run={"iterations": 9}), callbacks=[stop])
        self.assertIn([metrics["step"] for metrics in told], ([1, 2], [1, 2, 3]))  # a third one may have begun
        self.assertEqual(told, result.metrics)
        self.assertEqual((result.iterations, result.summary["iterations"]), (len(told), len(told)))
        self.assertTrue((result.output / f"checkpoints/step-{len(told):06}").exists())
        self.assertTrue((result.model / "model.safetensors").exists())

    def test_what_one_raises_comes_out_after_saving(self):
        thrown = KeyError("mine")

        def fail(metrics):
            raise thrown

        with self.assertRaises(KeyError) as caught:
            self.train(config(self.model, run={"iterations": 9}), callbacks=[fail])
        self.assertIs(caught.exception, thrown)
        self.assertTrue(list((self.output() / "checkpoints").glob("step-*")))
        self.assertEqual(self.train(config(self.model, run={"iterations": 9})).iterations, 9, "the same call goes on")

    def test_one_call_at_a_time(self):
        with self.assertRaisesRegex(collimate.RunError, "expected one call at a time in a process"):
            self.train(config(self.model), callbacks=[lambda metrics: collimate.check(config(self.model), problems(4))])
        self.assertEqual(collimate.check(config(self.model), problems(40), [low])["problems"], [])

    def test_a_curve_grows(self):
        curve = collimate.LiveCurve("critic/rewards/mean", "none<of>it")
        self.train(config(self.model), callbacks=curve)
        self.assertEqual([step for step, _ in curve.points["critic/rewards/mean"]], [1, 2, 3])
        self.assertEqual(curve.svg().count("<polyline"), 2)
        self.assertIn("none&lt;of&gt;it", curve.svg())


class Turns(WithTask):
    def test_those_that_nothing_marks_are_refused(self):
        model = self.train(config(self.model, run={"iterations": 1})).model
        turns = [{"role": role, "content": "1"} for role in ("user", "assistant", "user")]
        with self.assertRaisesRegex(ValueError, r"a chat template, which marks where a turn ends, .*"
                                                r'try chat_template=chatml, or plain to join turns'):
            collimate.generate(model, [turns])
        self.assertEqual(len(collimate.generate(model, [turns[:1]], max_tokens=1)), 1)
        self.assertEqual(len(collimate.generate(model, [turns], max_tokens=1, chat_template="plain")), 1)


class Interrupts(WithTask):
    def interrupted(self, times: int) -> KeyboardInterrupt:
        """A run that is interrupted so often in its second iteration."""
        def interrupt(metrics):
            for _ in range(times if metrics["step"] == 2 else 0):
                os.kill(os.getpid(), signal.SIGINT)

        before = signal.getsignal(signal.SIGINT)
        with self.assertRaises(KeyboardInterrupt) as caught:
            self.train(config(self.model, run={"iterations": 6, "save_every": 1}), callbacks=[interrupt])
        self.assertIs(signal.getsignal(signal.SIGINT), before)
        with self.assertRaises(KeyboardInterrupt):  # which is Python's again
            signal.raise_signal(signal.SIGINT)
        return caught.exception

    def test_one_saves_and_the_same_call_goes_on(self):
        error = self.interrupted(1)
        self.assertIn("iterations; state saved in ", str(error))
        self.assertFalse((self.output() / "summary.json").exists())
        resumed = self.train(config(self.model, run={"iterations": 6, "save_every": 1}))
        whole = self.train(config(self.model, run={"iterations": 6, "save_every": 1}), output=self.root / "whole")
        self.assertEqual([of_numbers(m) for m in resumed.metrics], [of_numbers(m) for m in whole.metrics])
        self.assertEqual((resumed.model / "model.safetensors").read_bytes(),
                         (whole.model / "model.safetensors").read_bytes())

    def test_a_second_one_stops_at_once(self):
        self.assertIn("stopped at once", str(self.interrupted(2)))
        self.assertLess(len(list((self.output() / "checkpoints").iterdir())), 3)


    def test_generate_and_evaluate_are_stopped(self):
        """A child that would generate for minutes is sent SIGINT, and raises KeyboardInterrupt."""
        trained = self.train(config(self.model, run={"iterations": 1}), output=self.root / "short").model
        model = shutil.copytree(trained, self.root / "endless")
        shape = json.loads((model / "config.json").read_text())
        (model / "config.json").write_text(json.dumps({**shape, "max_position_embeddings": 1 << 20}))
        endless = "max_tokens=1000000, ignore_eos=True"
        for verb, call in (("generate", f"{str(model)!r}, ['1='], {endless}"),
                           ("evaluate", f"{str(model)!r}, [{{'prompt': '1='}}], rewards, {endless}")):
            program = ENDLESS.format(verb=verb, call=call)
            child = subprocess.Popen([sys.executable, "-c", program, str(PACKAGE)], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
            self.addCleanup(child.kill)
            self.assertEqual(child.stdout.readline(), "begun\n")
            time.sleep(1)  # it is then in the call itself
            child.send_signal(signal.SIGINT)
            out, errors = child.communicate(timeout=60)
            self.assertIn(f"stopped: [{verb}] stopped", out, errors)


class Errors(WithTask):
    def test_wrong_input_is_a_value_error_with_the_message_of_the_command_line(self):
        values = config(self.model, run={"iterations": 0})
        (self.root / "wrong.yaml").write_text(json.dumps(values))
        done = subprocess.run([PROGRAM, "train", self.root / "wrong.yaml"], capture_output=True, text=True,
                              timeout=PATIENCE, cwd=self.root)
        with self.assertRaises(ValueError) as caught:
            self.train(values)
        self.assertIsInstance(caught.exception, collimate.InputError)
        self.assertTrue(str(caught.exception).startswith("[config] expected run.iterations"), str(caught.exception))
        self.assertEqual(done.stderr.strip(), str(caught.exception).replace("[config]", f"[{self.root}/wrong.yaml:1]"))
        self.assertFalse((self.output() / "config.resolved.yaml").exists())
        with self.assertRaisesRegex(collimate.InputError, "nothing.yaml"):
            collimate.train("nothing.yaml", output=self.output())
        with unittest.mock.patch.object(tempfile, "tempdir", str(self.root / "made")):
            (self.root / "made").mkdir()
            with self.assertRaises(collimate.InputError):
                collimate.train(values, problems(8), [low])
            self.assertEqual(list((self.root / "made").iterdir()), [], "a directory that was made goes again")

    def test_a_reward_that_raises_is_the_cause(self):
        """Before the run in the trial on the first row, later in the run itself."""
        calls = []

        def late(prompts, completions, **columns):
            calls.append(len(prompts))
            return ratio(prompts, completions) if len(calls) > 1 else [1.0] * len(prompts)

        for error, words, reward in (
                (collimate.InputError, r"^\[reward ratio on data.train row 1\] expected a reward, got "
                 "ZeroDivisionError: .*; the data has the columns ground_truth, prompt; ", ratio),
                (collimate.RunError, r"^\[reward late\] ZeroDivisionError", late)):
            with self.assertRaisesRegex(error, words) as caught:
                self.train(config(self.model), rewards=[low, reward])
            cause = caught.exception.__cause__
            self.assertIsInstance(cause, ZeroDivisionError)
            shown = "".join(traceback.format_exception(cause))
            self.assertIn("return [1 / (len(c) - len(c)) for c in completions]", shown)
            self.assertEqual((self.output() / "config.resolved.yaml").exists(), error is collimate.RunError)

    def test_a_reward_that_raises_may_be_given_a_value(self):
        rewards = [{"function": ratio, "on_error": 0.5}]
        metrics = self.train(config(self.model, run={"iterations": 1}), rewards=rewards).metrics[0]
        self.assertEqual((metrics["reward/errors"], metrics["critic/rewards/mean"]), (16, 0.5))

    def test_what_is_no_reward(self):
        for wrong, words in (("low", "expected a function or an entry of a config's"), (int, "Python knows"),
                             ({"function": low, "wieght": 2}, "wieght"), ({"rule": "exakt"}, "exact")):
            with self.assertRaises(collimate.InputError) as caught:
                self.train(config(self.model), rewards=[wrong])
            self.assertIn(words, str(caught.exception))
        with self.assertRaisesRegex(collimate.InputError, "rewards in files with cluster: local-processes"):
            self.train({**config(self.model), "cluster": "local-processes"})

    def test_columns_by_the_names_of_arguments_are_refused(self):
        rows = [{**row, "completions": 1} for row in problems(8)]
        with self.assertRaisesRegex(collimate.InputError, "no data column of the name of an argument that low has"):
            self.train(config(self.model), rows)


class Rows(WithTask):
    def test_rows_of_any_table(self):
        class Number:  # as NumPy's
            def tolist(self):
                return 7

        class Frame:  # as pandas'
            columns = ["prompt"]

            def to_dict(self, orient):
                assert orient == "records"
                return problems(8)

        class Arrow:
            def to_pylist(self):
                return problems(8)

        generated = ({**row, "number": Number()} for row in problems(8))
        for data in (Frame(), Arrow(), generated, tuple(problems(8))):
            found = collimate.check(config(self.model), data, [low])
            self.assertEqual((found["problems"], found["data"][0]["rows"]), ([], 8), type(data))

    def test_wrong_rows_are_named(self):
        for data, words in ((["2+2="], r"\[data.train row 1\] expected a dict, got '2\+2='"),
                            ([*problems(2), {"prompt": float("nan")}], r"train row 3\] expected values that JSON has"),
                            ([{"prompt": object()}], "a value of type object"),
                            (7, "expected rows, each a dict, got int"),
                            ({"prompt": ["1"]}, "expected a dict with train and eval, or rows, got one with prompt")):
            with self.assertRaisesRegex(collimate.InputError, words):
                collimate.check(config(self.model), data, [low])
        self.assertEqual(collimate.check(config(self.model), [], [low])["problems"][0],
                         "[data.train] expected at least one row, got none")

    def test_rows_in_memory_are_named_by_their_number(self):
        rows = [*problems(1), {"prompt": ""}]
        with self.assertRaisesRegex(collimate.InputError, r"^\[data.train row 2 column prompt\] expected a prompt"):
            self.train(config(self.model), rows)
        problem = collimate.check(config(self.model), {"train": problems(4), "eval": rows}, [low])["problems"][0]
        self.assertTrue(problem.startswith("[data.eval row 2 column prompt]"), problem)
        with self.assertRaisesRegex(collimate.InputError, r"^\[data row 2 column prompt\]"):
            collimate.evaluate(self.model, rows, [low])
        with self.assertRaisesRegex(collimate.InputError, r"^\[prompts row 1 column prompt\]"):
            collimate.generate(self.model, [""])
        own = [{"frage": "1=", "antwort": "1"}]
        unknown = (r"expected columns of a known shape \(.*\), got frage, antwort; try dicts with these keys: "
                   r'{"prompt": row\["YOURS"\], "completion": row\["YOURS"\]}$')
        for key, call in (("data.train", lambda rows: self.train(config(self.model), rows, output=self.root / "none")),
                          ("data.eval", lambda rows: self.train(
                              config(self.model), {"train": problems(4), "eval": rows}, output=self.root / "none")),
                          ("data", lambda rows: collimate.evaluate(self.model, rows, [low])),
                          ("prompts", lambda rows: collimate.generate(self.model, rows))):
            with self.assertRaisesRegex(collimate.InputError, rf"^\[{key} row 1\] {unknown}"):
                call(own)
            with self.assertRaisesRegex(collimate.InputError, rf"^\[{key}\] expected at least one row, got none$"):
                call([])
        trained = self.train(config(self.model, run={"iterations": 1})).model
        self.assertEqual(collimate.evaluate(trained, problems(2), [low], max_tokens=2)["data"], "data")

    def test_a_run_keeps_its_rows(self):
        first = self.train(config(self.model, run={"iterations": 1}))
        again = self.train(config(self.model, run={"iterations": 2}))  # longer, and goes on
        self.assertEqual((first.iterations, again.iterations), (1, 2))
        with self.assertRaisesRegex(collimate.InputError, "expected the rows that the run in .* began with, got"):
            self.train(config(self.model, run={"iterations": 3}), problems(41))
        self.assertEqual(len((first.output / "rows/train.jsonl").read_text().splitlines()), 40)

    def test_check_says_what_the_command_line_says(self):
        os.mkdir(taken := f"{tempfile.gettempdir()}/collimate-config-{os.getpid()}.yaml")  # a name is nobody's alone
        self.addCleanup(os.rmdir, taken)
        found = collimate.check(config(self.model), problems(40), [low])
        self.assertIn("reward low on data.train row 1: ", "".join(found["notes"]))
        self.assertEqual(found["config"]["run"]["seed"], 7)
        bad = collimate.check(config(self.model, train={"warmup_updates": 9}), problems(40), [low])
        self.assertIn("train.warmup_updates", "".join(bad["problems"]))


if __name__ == "__main__":
    unittest.main()
