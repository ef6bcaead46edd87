"""The verb calibrate as a user calls it, and plans with what it wrote."""
import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ["COLLIMATE_BIN_DIR"]) / "collimate"
DRAWING = """recipe: {0}
models: {{policy: {{path: {1}/start, from_scratch: true, initializer_std: 0.1}}}}
data: {{train: {1}/problems.jsonl}}
reward: [{{rule: regex, pattern: "^[0-4]"}}]
rollout: {{prompts_per_iteration: 4, samples_per_prompt: 4, prompt_tokens: 8, completion_tokens: 6}}
train: {{samples_per_update: 8, learning_rate: 1e-3}}
run: {{iterations: 2, seed: 7}}
"""
FINE_TUNING = """recipe: sft
models: {{policy: {{path: {0}/start, from_scratch: true}}}}
data: {{train: {0}/demonstrations.jsonl}}
train: {{samples_per_update: 8, learning_rate: 1e-3}}
run: {{iterations: 2, seed: 7}}
"""


def run(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False)


class Calibrate(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        start = self.folder / "start"
        start.mkdir()
        model = ROOT / "tests/golden/small/models/tiny/config.json"
        (start / "config.json").write_text(model.read_text())
        (start / "tokenizer_config.json").write_text(json.dumps({"char_ords": [ord(c) for c in "0123456789,:"]}))
        lines = {"problems": [{"prompt": f"{i}:", "ground_truth": "1"} for i in range(90, 130)],
                 "demonstrations": [{"prompt": f"{i}:", "completion": f"{i},{i}"} for i in range(90, 130)]}
        for name, rows in lines.items():
            (self.folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        for recipe in ("grpo", "ppo"):
            (self.folder / f"{recipe}.yaml").write_text(DRAWING.format(recipe, self.folder))
        (self.folder / "sft.yaml").write_text(FINE_TUNING.format(self.folder))

    def calibrated(self, recipe, iterations, *more):
        machine = self.folder / f"{recipe}-machine.yaml"
        done = run("calibrate", self.folder / f"{recipe}.yaml", "--output", machine, "--iterations", iterations,
                   "--json", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return machine, json.loads(done.stdout)

    def planned(self, *words):
        done = run("plan", *words, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["plans"][0]

    def test_a_plan_of_the_config_takes_what_was_fitted(self):
        config = self.folder / "ppo.yaml"
        machine, found = self.calibrated("ppo", 3)
        measured = {(m["run"], m["function"]): m for m in found["measurements"]}
        self.assertEqual({run for run, _ in measured}, {"all rows", "half of the rows", "half of the completion"})
        for function in ("policy.generate", "reference.log_probs", "value.values", "policy_trainer.train",
                         "value.train", "iteration"):
            for name in ("all rows", "half of the rows"):
                self.assertGreater(measured[name, function]["measured_seconds"], 0, (name, function))
        self.assertEqual(measured["all rows", "iteration"]["rows"], 16)
        self.assertEqual(measured["half of the rows", "iteration"]["rows"], 8)
        # Which of them the times of so small a model tell apart depends on what else the machine does.
        self.assertTrue(set(found["constants"]) & {"train_efficiency", "score_efficiency", "decode_layer_seconds",
                                                   "phase_seconds"}, found["constants"])
        text = machine.read_text()
        self.assertTrue(text.startswith(f"# collimate calibrate {config} --devices 1 --iterations 3\n# on "), text)

        plan = self.folder / "plan.yaml"
        best = self.planned(config, "--cluster", "1x1xcpu", "--constants", machine, "--output", plan)
        fitted = measured["all rows", "iteration"]["fitted_seconds"]
        self.assertAlmostEqual(best["period_seconds"] / fitted, 1, places=3)
        simulated = run("simulate", plan, "--json")
        self.assertEqual(simulated.returncode, 0, simulated.stderr)
        self.assertAlmostEqual(json.loads(simulated.stdout)["period_seconds"], best["period_seconds"], places=9)
        self.assertIn("as " + str(machine) + " says for this config", simulated.stderr)

        other = run("plan", config, "--constants", machine, "--set", "rollout.completion_tokens=4")
        self.assertEqual(other.returncode, 0, other.stderr)
        self.assertNotIn("says for this config", other.stderr)
        self.assertEqual(other.stderr.count("are not used, because they are another config's"), 1, other.stderr)
        told = run("plan", config, "--constants", machine, "--set", "rollout.completion_tokens=4", "--prompt", 4,
                   "--completion", 4)
        self.assertNotIn("of another config", told.stderr)

        slower = self.planned(config, "--cluster", "1x1xcpu", "--constants", machine, "--constant", "phase_seconds=1")
        self.assertGreater(slower["period_seconds"], 5)
        self.assertGreater(self.planned(config, "--cluster", "2xcpu", "--constants", machine)["period_seconds"], 0)

    def test_what_it_sets_itself_is_no_warning_and_what_it_is_told_is_kept(self):
        config, machine = self.folder / "grpo.yaml", self.folder / "machine.yaml"
        sets = ["--set", f"data.eval={self.folder}/problems.jsonl", "--set", "evaluation.temperature=0.5", "--set",
                "train.warmup_updates=100", "--set", 'reward=[{rule: regex, pattern: "^[0-5]"}]']
        done = run("calibrate", config, "--output", machine, "--iterations", 2, *sets)
        self.assertEqual(done.returncode, 0, done.stderr)
        for key in ("data.eval", "evaluation", "warmup_updates"):
            self.assertNotIn(key, done.stderr)
        words = shlex.split(machine.read_text().splitlines()[0].removeprefix("# "))
        self.assertEqual(words, ["collimate", "calibrate", str(config), "--devices", "1", "--iterations", "2", *sets])
        self.assertIn(f"--cluster 1xcpu --constants {machine}", done.stdout)

    def test_devices_side_by_side_have_the_rows_each(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one core")
        found = self.calibrated("grpo", 2, "--devices", 2)[1]
        rows = {m["run"]: m["rows"] for m in found["measurements"]}
        self.assertEqual(rows, {"all rows": 32, "half of the rows": 16, "half of the completion": 32})
        self.assertIn("host_row_seconds", found["constants"])
        found = self.calibrated("sft", 2, "--devices", 2)[1]
        self.assertEqual({m["run"]: m["rows"] for m in found["measurements"]},
                         {"all rows": 16, "half of the rows": 8})
        self.assert_trained_length(found)

    def test_a_recipe_that_generates_nothing_says_nothing_of_decoding(self):
        found = self.calibrated("sft", 2)[1]
        self.assertEqual({m["function"] for m in found["measurements"]}, {"policy.train", "iteration"})
        self.assertTrue(found["constants"])
        self.assertNotIn("decode_layer_seconds", found["constants"])
        self.assert_trained_length(found)

    def assert_trained_length(self, found):
        self.assertEqual(found["prompt"], "1")
        bars = [bar.split("=") for bar in found["completion"].removeprefix("histogram:").split(",")]
        mean = sum(float(bar[0]) * float(bar[1] if len(bar) > 1 else 1) for bar in bars)
        self.assertAlmostEqual(mean, 10.5, delta=2)  # of 3 or 4, and 5 or 7 tokens and the end, less one

    def items_of_a_run(self, name, *sets):
        """The allocator's peaks of each worker, by item, of a run of the config, and what was planned for it."""
        config, out = self.folder / "grpo.yaml", self.folder / name
        words = [word for text in sets for word in ("--set", text)]
        done = run("train", config, "--output", out, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        workers = json.loads((out / "summary.json").read_text())["memory"]["workers"]
        peaks = [{item["item"].split("/")[-1]: item["peak_bytes"] for item in worker["items"]} for worker in workers
                 if worker["planned_bytes"] > 0]
        flat = self.folder / "flat.yaml"
        devices = len(peaks)
        flat.write_text(f"version: 1\ndevices: {{count: {devices}, kind: cpu}}\n"
                        f"groups: {{all: {{devices: {list(range(devices))}, models: [policy, policy_trainer]}}}}\n")
        done = run("simulate", flat, "--config", config, "--cluster", f"{devices}xcpu", "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = {f"{call['model']}.{call['function']}": call for call in json.loads(done.stdout)["calls"]}
        planned = {(name, item["what"]): item["bytes"] for name, call in calls.items()
                   for item in call["holds"] + call["needs"]}
        return peaks, planned, calls

    # Every replica has a pool for all rows, and adapters are what is trained. In a model of a few kilobytes what the
    # allocator rounds up, and norms, which an outline leaves out, are up to a fifth.
    def test_a_configs_memory_is_what_its_run_takes(self):
        def above(bound, peak):
            self.assertGreaterEqual(1.2 * bound, peak)

        devices = f"devices={min(2, len(os.sched_getaffinity(0)))}"
        whole, of_whole, calls = self.items_of_a_run("whole", devices)
        thin, of_thin, _ = self.items_of_a_run("thin", devices, "models.policy.lora={rank: 4}")
        few, of_few, _ = self.items_of_a_run("few", devices, "rollout.cache_blocks=3")
        half, of_half, _ = self.items_of_a_run("half", devices, "models.policy.compute=bfloat16")
        pool, trains = ("policy.generate", "keys and values"), "policy_trainer.train"
        for runs, planned in ((whole, of_whole), (few, of_few), (half, of_half)):
            for worker in runs:
                above(planned[pool], worker["kv_cache"])
                self.assertLess(planned[pool], 1.15 * worker["kv_cache"])
        self.assertLess(of_few[pool], of_whole[pool] / 4)
        self.assertEqual(of_half[pool], of_whole[pool] / 2)
        for runs, planned in ((whole, of_whole), (thin, of_thin)):
            for worker in runs:
                above(planned[trains, "optimizer"], worker["optimizer"])
                above(planned[trains, "gradients"], worker["gradient"])
        for worker in thin:
            above(of_thin[trains, "adapters"], worker["master"])
            above(of_thin[trains, "weights"], worker["values"])
        self.assertLess(of_thin[trains, "gradients"], of_whole[trains, "gradients"])
        self.assertIn("adapters", [what for owner, what in of_thin if owner == "policy.generate"])
        self.assertNotIn("recompute", calls[trains]["layout"])
        _, lean, calls = self.items_of_a_run("lean", devices, "train.recompute=full", "train.micro_batch_tokens=28")
        self.assertIn("recompute", calls[trains]["layout"])
        self.assertLess(lean[trains, "activations"], of_whole[trains, "activations"])

    def test_wrong_input_is_named(self):
        def error(*words):
            done = run(*words)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertEqual(done.stdout, "")
            return done.stderr

        config = self.folder / "sft.yaml"
        self.assertIn("absent.yaml", error("calibrate", self.folder / "absent.yaml"))
        self.assertIn("2 or more", error("calibrate", config, "--iterations", 1))
        self.assertIn("cores of this machine", error("calibrate", config, "--devices", 10000))
        self.assertIn("a directory that exists", error("calibrate", config, "--output", self.folder / "no/m.yaml"))
        other = "placement={devices: {count: 1, kind: cuda}, groups: {all: {devices: [0], models: [policy]}}}"
        self.assertIn("got cuda", error("calibrate", config, "--set", other))
        wrong = self.folder / "wrong.yaml"
        wrong.write_text("constants:\n  phase_second: 1\n")
        self.assertIn("try 'phase_seconds'", error("plan", config, "--constants", wrong))
        self.assertIn("wrong.yaml:2", error("plan", config, "--constants", wrong))
        self.assertIn("none.yaml", error("plan", config, "--constants", self.folder / "none.yaml"))


if __name__ == "__main__":
    unittest.main()
