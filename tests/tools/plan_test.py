"""The verbs plan and simulate as a user calls them."""
import json
import os
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(os.environ["COLLIMATE_BIN_DIR"]).resolve() / "collimate"
FLOW = ["--flow", "ppo", "--models", "policy=llama2-7b,reward=opt-1.3b", "--cluster", "8xA100-80", "--rows", "512",
        "--prompt", "256", "--completion", "mean:300,0.8,1024"]
TINY = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 256, "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5}
CONFIG = """recipe: grpo
models: {policy: {path: "tiny model"}}
reward: [{rule: exact}]
rollout: {prompts_per_iteration: 8, samples_per_prompt: 2, prompt_tokens: 16, completion_tokens: 16}
train: {samples_per_update: 8}
"""


def run(*words, cwd=None):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False, cwd=cwd)


def request_in(path):
    """The lines of a plan file's request."""
    lines = pathlib.Path(path).read_text(encoding="utf-8").split("\n")
    return [line.strip() for line in lines[1:next(i for i, line in enumerate(lines[1:], 1) if line[:1] != " ")]]


class Plan(unittest.TestCase):
    def plan(self, *words, cwd=None):
        planned = run("plan", *words, "--json", cwd=cwd)
        self.assertEqual(planned.returncode, 0, planned.stderr)
        return json.loads(planned.stdout)

    def simulate(self, *words, cwd=None):
        simulated = run("simulate", *words, "--json", cwd=cwd)
        self.assertEqual(simulated.returncode, 0, simulated.stderr)
        return json.loads(simulated.stdout)

    def config(self, folder, **sizes):
        work = pathlib.Path(folder)
        (work / "tiny model").mkdir()
        (work / "tiny model" / "config.json").write_text(json.dumps({**TINY, **sizes}), encoding="utf-8")
        (work / "run.yaml").write_text(CONFIG, encoding="utf-8")

    def refused(self, *words):
        done = run(*words)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def test_a_plan_file_says_what_it_is_for(self):
        with tempfile.TemporaryDirectory() as folder:
            plan, page, trace = (os.path.join(folder, name) for name in ("plan.yaml", "plan.html", "trace.json"))
            best = self.plan(*FLOW, "--output", plan, "--html", page)["plans"][0]
            again = self.simulate(plan, "--trace", trace)
            self.assertAlmostEqual(again["period_seconds"], best["period_seconds"], places=6)
            self.assertEqual(again["placement"], best["placement"])
            for once, twice in zip(best["calls"], again["calls"]):
                self.assertAlmostEqual(once["end_seconds"], twice["end_seconds"], places=6)
            self.assertEqual(again["misfit"], "")
            self.assertGreater(best["estimated_seconds"], 0)
            self.assertNotIn("estimated_seconds", again)  # which the search alone makes
            with open(trace, encoding="utf-8") as file:
                threads = {event["tid"] for event in json.load(file)["traceEvents"] if event["ph"] == "X"}
            self.assertTrue(set(range(8)) <= threads, threads)
            with open(page, encoding="utf-8") as file:
                self.assertIn("<svg", file.read())

    def test_a_plan_file_holds_anywhere(self):
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder, "my work")
            (work / "tiny model").mkdir(parents=True)
            (work / "plans").mkdir()
            (work / "tiny model" / "config.json").write_text(json.dumps(TINY), encoding="utf-8")
            (work / "a run.yaml").write_text(CONFIG, encoding="utf-8")
            best = self.plan("a run.yaml", "--cluster", "2xcpu", "--set", "data.train=an 'odd' name", "--output",
                             "plans/plan.yaml", cwd=work)["plans"][0]
            self.assertEqual(request_in(work / "plans/plan.yaml"),
                             ['config: "../a run.yaml"', 'directory: ".."', 'cluster: "2xcpu"',
                              'set: ["data.train=an \'odd\' name"]'])
            moved = pathlib.Path(folder, "moved")
            for path, cwd in ((work / "plans/plan.yaml", "/"), ("plan.yaml", work / "plans")):
                self.assertAlmostEqual(self.simulate(path, cwd=cwd)["period_seconds"], best["period_seconds"])
            shutil.move(work, moved)
            self.assertAlmostEqual(self.simulate(moved / "plans/plan.yaml", cwd="/")["period_seconds"],
                                   best["period_seconds"])
            # One beside the tree names it absolutely; a directory as a model is a file too.
            outside = os.path.join(folder, "outside.yaml")
            best = self.plan("--flow", "grpo", "--models", "policy=tiny model", "--cluster", "2xcpu", "--rows", "16",
                             "--output", outside, cwd=moved)["plans"][0]
            self.assertIn(f'models: ["policy={moved.resolve()}/tiny model"]', request_in(outside))
            self.assertAlmostEqual(self.simulate(outside, cwd="/")["period_seconds"], best["period_seconds"])

    def test_a_wrong_request_names_file_key_and_remedy(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.yaml")
            self.plan(*FLOW, "--output", path)
            text = pathlib.Path(path).read_text(encoding="utf-8")
            rows = text[:text.index("  rows: 512")].count("\n") + 1
            for old, new, error in (
                    ("  rows: 512", "  row: 512",
                     f'[{path}:{rows}] expected a key of section request, got "row"; try "rows"'),
                    ("  rows: 512", "  rows: many", f"[{path}:{rows}] expected request.rows to be "),
                    ("  rows: 512", "  rows: 0", f"[{path}:{rows}] expected request.rows to be at least 1"),
                    ("  rows: 512", "  staleness: 17", "request.staleness to be between 0 and 16"),
                    ("  rows: 512", "  models: [opt-125m, {a: b}]", f"[{path}:{rows}] expected "),
                    ("8xA100-80", "8xA200", f"[{path}: request, cluster] expected NODESxDEVICESxKIND"),
                    (text[:text.index("devices:")], "request: 7\n", f"[{path}:1] expected "),
                    (text[:text.index("devices:")], "", "--flow ppo --models")):
                pathlib.Path(path).write_text(text.replace(old, new), encoding="utf-8")
                self.assertIn(error, self.refused("simulate", path), new)

    def test_simulate_applies_what_it_is_told_or_refuses_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.yaml")
            best = self.plan(*FLOW, "--output", path)["plans"][0]
            faster = self.simulate(path, "--cluster", "8xH100-80")
            self.assertEqual(faster["cluster"], "1x8xH100-80")
            self.assertLess(faster["period_seconds"], best["period_seconds"])
            ahead = self.simulate(path, "--staleness", "2")
            self.assertEqual(ahead["placement"]["staleness"], 2)
            self.assertLessEqual(ahead["period_seconds"], best["period_seconds"] * 1.001)
            self.assertIn("devices 4-7 of group", self.refused("simulate", path, "--cluster", "4xA100-80"))
            self.assertIn("kind cuda", self.refused("simulate", path, "--cluster", "8xcpu"))
            for option in (("--layouts", "dp"), ("--micro-batch", "2"), ("--fix", "policy.generate=tp:2")):
                self.assertIn("no other layouts than those of", self.refused("simulate", path, *option))

    def test_another_config_is_taken_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            self.config(folder)
            best = self.plan("run.yaml", "--cluster", "2xcpu", "--models", "opt-125m", "--rows", "64", "--updates",
                             "8", "--prompt", "9", "--completion", "5", "--iterations", "7", "--output", "plan.yaml",
                             cwd=work)["plans"][0]
            text = (work / "plan.yaml").read_text(encoding="utf-8")
            (work / "layout.yaml").write_text(text[text.index("devices:"):], encoding="utf-8")
            alone = self.simulate("layout.yaml", "--config", "run.yaml", "--cluster", "2xcpu", cwd=work)
            other = self.simulate("plan.yaml", "--config", "run.yaml", cwd=work)
            self.assertAlmostEqual(other["period_seconds"], alone["period_seconds"])
            self.assertEqual(other["run"], alone["run"])
            self.assertGreater(best["period_seconds"], 1.5 * other["period_seconds"])

    def test_few_rows_are_as_many_updates(self):
        few = ["--flow", "grpo", "--models", "llama2-7b", "--cluster", "8xA100", "--rows", "4"]
        self.assertEqual(self.plan(*few)["plans"][0]["period_seconds"],
                         self.plan(*few, "--updates", "4")["plans"][0]["period_seconds"])
        self.assertIn("try --updates 4", self.refused("plan", *few, "--updates", "8"))

    def test_a_cpu_has_the_workspace_of_one(self):
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            self.config(folder)
            small = ["--flow", "grpo", "--models", "tiny model", "--cluster", "2xcpu", "--rows", "16", "--prompt", "16",
                     "--completion", "16"]
            best = self.plan(*small, "--device", "cpu.memory_bytes=1e8", cwd=work)["plans"][0]
            self.assertLess(best["peak_bytes"], 1e8)
            given = self.plan(*small, "--constant", "workspace_bytes=1e9", cwd=work)["plans"][0]
            self.assertGreater(given["peak_bytes"], 1e9)

    def test_staleness_is_a_bound(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.yaml")
            planned = self.plan(*FLOW, "--staleness", "1", "--output", path)
            best = planned["plans"][0]
            self.assertEqual([tried["staleness"] for tried in planned["synchrony"]], [0, 1])
            self.assertLessEqual(best["period_seconds"], planned["synchrony"][0]["period_seconds"] * 1.005)
            again = self.simulate(path)
            self.assertEqual(again["placement"]["staleness"], best["placement"]["staleness"])
            self.assertAlmostEqual(again["period_seconds"], best["period_seconds"], places=6)

    def test_why_not_another_plan(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.yaml")
            mine = self.plan(*FLOW, "--fix", "policy.generate=tp:8,pp:1", "--output", path)["plans"][0]
            self.assertIn("tp 8 · pp 1", mine["calls"][0]["layout"])
            answer = self.plan(*FLOW, "--why-not", path)["why_not"]
            self.assertAlmostEqual(answer["plan"]["period_seconds"], mine["period_seconds"], places=6)
            self.assertGreater(answer["slower_by"], -0.005)
            self.assertTrue(answer["objection"])
            shown = run("plan", *FLOW, "--why-not", path)
            self.assertIn("why not mine.yaml: " + mine["form"], shown.stdout)
            self.assertIn(answer["objection"], shown.stdout)
            smaller = [word.replace("8xA100-80", "4xA100-80") for word in FLOW]
            self.assertIn("devices 4-7", self.refused("plan", *smaller, "--why-not", path))

    def test_a_price_is_the_users(self):
        run_of = self.plan(*FLOW, "--price", "2.5", "--iterations", "10")["run"]
        self.assertEqual(run_of["price_source"], "--price")
        self.assertAlmostEqual(run_of["dollars"], 2.5 * run_of["gpu_hours"])
        self.assertIn("assumed", self.plan(*FLOW)["run"]["price_source"])
        self.assertIn("dollars of one device", self.refused("plan", *FLOW, "--price", "cheap"))

    def test_several_kinds_of_device(self):
        flow = [word.replace("8xA100-80", "4xA100-80+4xH100-80") for word in FLOW]
        with tempfile.TemporaryDirectory() as folder:
            path, page = os.path.join(folder, "plan.yaml"), os.path.join(folder, "plan.html")
            planned = self.plan(*flow, "--output", path, "--html", page)
            best = planned["plans"][0]
            self.assertIn('cluster: "4xA100-80+4xH100-80"', request_in(path))
            again = self.simulate(path)
            self.assertEqual(again["cluster"], "1x4xA100-80+1x4xH100-80")
            self.assertEqual(again["placement"], best["placement"])
            self.assertAlmostEqual(again["period_seconds"], best["period_seconds"], places=6)
            self.assertEqual([kind["kind"] for kind in planned["run"]["kinds"]], ["A100-80", "H100-80"])
            for total in ("gpu_hours", "dollars"):
                self.assertAlmostEqual(sum(kind[total] for kind in again["run"]["kinds"]), again["run"][total])
            for memory in best["memory"]:
                self.assertLessEqual(memory["peak_bytes"], memory["usable_bytes"] * (1 + 1e-9))
            with open(page, encoding="utf-8") as file:
                self.assertIn("H100-80<title>", file.read())
        for alone in ("4xA100-80", "4xH100-80"):
            only = self.plan(*(word.replace("8xA100-80", alone) for word in FLOW))["plans"][0]
            self.assertLessEqual(best["period_seconds"], 1.015 * only["period_seconds"])
        shown = run("plan", *flow, "--price", "A100-80=1,H100-80=3").stdout
        self.assertIn("at $1.00 an hour", shown)
        self.assertIn("at $3.00 an hour", shown)
        self.assertNotIn("assumed", shown)
        self.assertIn("kinds of device of 1x4xA100-80+1x4xH100-80, got 'H20-96'",
                      self.refused("plan", *flow, "--price", "H20=1"))
        self.assertIn("GPUs alone or CPUs alone", self.refused("plan", *FLOW[:4], "--cluster", "4xA100+2xcpu"))

    def test_the_quick_claims_of_the_documentation_hold(self):
        script = pathlib.Path(__file__).parents[2] / "bench/planner_tables.py"
        done = subprocess.run([sys.executable, script, "claims", "forms"], capture_output=True, text=True, check=False,
                              env={**os.environ, "COLLIMATE": str(PROGRAM)})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("| llama2-7b on 8xA100-80 | 6750 |", done.stdout)

    def test_a_form_is_asked_for(self):
        best = self.plan(*FLOW, "--form", "separation")["plans"]
        self.assertEqual({plan["form"] for plan in best} - {"nested", "standalone"}, {"separation"})
        self.assertIn("try 'separation'", self.refused("plan", *FLOW, "--form", "seperation"))
        one = [word.replace("8xA100-80", "1xH200-141").replace("llama2-7b", "opt-1.3b") for word in FLOW]
        self.assertIn("[--form standalone] expected a form of which a placement fits",
                      self.refused("plan", *one, "--form", "standalone"))

    def test_lora_needs_fewer_devices(self):
        flow = ["--flow", "grpo", "--models", "llama2-70b", "--cluster", "4xH100-80"]
        self.assertIn("models that fit the cluster", self.refused("plan", *flow))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.yaml")
            best = self.plan(*flow, "--lora", "policy_trainer=64", "--output", path)["plans"][0]
            self.assertIn('lora: ["policy_trainer=64"]', request_in(path))
            self.assertAlmostEqual(self.simulate(path)["period_seconds"], best["period_seconds"], places=6)
        self.assertIn("try 'policy_trainer'", self.refused("plan", *flow, "--lora", "policy_trainr=64"))
        self.assertIn("a rank from 1", self.refused("plan", *flow, "--lora", "policy_trainer=0"))

    def test_a_configs_adapters_are_planned(self):
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            adapters = CONFIG.replace('"tiny model"', "llama2-7b, lora: {rank: 16}")
            for name, text in (("whole", CONFIG.replace('"tiny model"', "llama2-7b")), ("thin", adapters)):
                (work / f"{name}.yaml").write_text(text, encoding="utf-8")
            self.assertIn("models that fit the cluster",
                          self.refused("plan", work / "whole.yaml", "--cluster", "1x1xA100-80"))
            best = self.plan("thin.yaml", "--cluster", "1x1xA100-80", "--output", "plan.yaml", cwd=work)["plans"][0]
            held = {item["what"]: item["bytes"] for call in best["calls"] for item in call["holds"]
                    if item["owner"] == "policy_trainer.train"}
            elements = 32 * 16 * (4 * (4096 + 4096) + 3 * (4096 + 11008))
            self.assertEqual(held["adapters"], 2 * elements)
            self.assertEqual(held["optimizer"], 12 * elements)
            self.assertAlmostEqual(self.simulate("plan.yaml", cwd=work)["period_seconds"], best["period_seconds"])
            more = self.plan("thin.yaml", "--cluster", "1x1xA100-80", "--lora", "policy_trainer=32", cwd=work)
            held = [item for item in more["plans"][0]["calls"][0]["holds"] if item["what"] == "adapters"]
            self.assertEqual(held[0]["bytes"], 4 * elements)

    def test_a_shadow_has_its_own_devices(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.yaml")
            best = self.plan(*FLOW, "--shadow", "value", "--form", "separation", "--output", path)["plans"][0]
            devices = {f"{call['model']}.{call['function']}": call["devices"] for call in best["calls"]}
            self.assertNotEqual(devices["policy.generate"], devices["value_trainer.train"])
            self.assertIn("shadow: [value]", request_in(path))
            self.assertAlmostEqual(self.simulate(path)["period_seconds"], best["period_seconds"], places=6)
            self.assertIn("try 'value'", self.refused("plan", *FLOW, "--shadow", "vlaue"))

    def test_tables_say_where_numbers_come_from(self):
        listed = run("plan", "--list", "constants", "--constant", "phase_seconds=0.25", "--json")
        values = {row["constant"]: row for row in json.loads(listed.stdout)["constants"]}
        self.assertEqual(values["phase_seconds"]["value"], 0.25)
        self.assertTrue(all(row["source"] for row in values.values()))
        self.assertIn("A100-80", run("plan", "--list", "devices").stdout)
        self.assertIn("try 'devices'", self.refused("plan", "--list", "device"))

    def test_devices_are_the_users(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.yaml")
            flow = [word.replace("8xA100-80", "8xMine") for word in FLOW]
            own = ["--device", "Mine=A100-80", "--device", "Mine.memory_bytes=120e9", "--device", "Mine.flops=6e14",
                   "--constant", "nccl.ring_simple.efficiency=0.5"]
            best = self.plan(*flow, *own, "--output", path)["plans"][0]
            for memory in best["memory"]:
                self.assertGreater(memory["usable_bytes"], 100e9)
            self.assertLess(best["period_seconds"], self.plan(*FLOW)["plans"][0]["period_seconds"])
            self.assertIn('device: ["Mine=A100-80", "Mine.memory_bytes=120e9", "Mine.flops=6e14"]', request_in(path))
            again = self.simulate(path)
            self.assertEqual(again["cluster"], "1x8xMine")
            self.assertAlmostEqual(again["period_seconds"], best["period_seconds"], places=6)
            self.assertIn("try 'memory_bytes'", self.refused("plan", *FLOW, "--device", "A100-80.memory_byte=1e9"))

    def test_a_sweep_says_what_more_devices_buy(self):
        first, second = self.plan(*FLOW, "--sweep", "devices=8,16")["sweep"]
        self.assertGreater(first["period_seconds"], second["period_seconds"])

    def test_wrong_input_gets_the_nearest_choice(self):
        def error(models, cluster, *more, flow="ppo"):
            return self.refused("plan", "--flow", flow, "--models", models, "--cluster", cluster, *more)

        self.assertIn("try 'llama2-7b'", error("llama2-7bb", "8xA100"))
        self.assertIn("try 'llama2-7b'", error("llama2-8b", "8xA100"))
        self.assertIn("try 'gpt3-175b'", error("gpt5", "8xA100"))
        self.assertIn("try 8xA100-80", error("llama2-7b", "8xA200"))
        self.assertIn("try 8xA100-80, or 2xcpu for processors", error("llama2-7b", "8"))
        self.assertIn("from 1 to", error("llama2-7b", "0xA100"))
        self.assertIn("try 'policy'", error("polcy=llama2-7b", "8xA100"))
        self.assertIn("try 'policy'", error("actor=llama2-7b", "8xA100"))
        self.assertIn("try 4xA100-80+4xH100-80", error("llama2-7b", "4xA100, 4xH100"))
        self.assertIn("try 'ppo'", error("llama2-7b", "8xA100", flow="pppo"))
        self.assertRegex(error("llama2-7b,gae=opt-350m", "8xA100"),
                         "one of policy, .*reward, value, got 'gae', which runs on the host and has no weights")
        self.assertIn("'policy' twice", error("llama2-7b,policy=opt-350m", "8xA100"))
        self.assertIn("try tp:2", error("llama2-7b", "8xA100", "--fix", "policy.generate=tp:3"))
        self.assertIn("'policy.generate' twice",
                      error("llama2-7b", "8xA100", "--fix", "policy.generate=tp:2", "--fix", "policy.generate=pp:2"))
        self.assertIn("got both", self.refused("plan", "run.yaml", "--flow", "ppo"))
        too_large = error("llama3.1-405b", "8xA100-80")
        self.assertRegex(too_large, r"of which \w+ .*GB.*; try \d+x8xA100-80")

    def test_what_is_read_is_not_written(self):
        with tempfile.TemporaryDirectory() as folder:
            self.config(folder)
            link, plan = (os.path.join(folder, name) for name in ("link.yaml", "plan.yaml"))
            config = os.path.join(folder, "run.yaml")
            os.symlink(config, link)
            text = pathlib.Path(config).read_text(encoding="utf-8")
            for words in (("--output", config), ("--html", config), ("--output", link),
                          ("--html", os.path.join(folder, ".", "run.yaml"))):
                error = self.refused("plan", config, "--cluster", "2xcpu", *words)
                self.assertTrue(error.startswith(f"[{words[0]}] "), error)
                self.assertIn(f"got '{words[1]}', the config; try", error)
            self.assertIn("which --output writes", self.refused("plan", config, "--output", plan, "--html", plan))
            self.assertIn("the config", self.refused("calibrate", config, "--output", config))
            self.assertIn("the file of --constants",
                          self.refused("plan", *FLOW, "--constants", config, "--output", config))
            self.plan("run.yaml", "--cluster", "2xcpu", "--output", "plan.yaml", cwd=folder)
            self.assertIn("the placement to simulate", self.refused("simulate", plan, "--trace", plan))
            self.assertIn("the config", self.refused("simulate", plan, "--trace", config))
            self.assertEqual(pathlib.Path(config).read_text(encoding="utf-8"), text)

    def test_a_budget_of_memory_decides(self):
        with tempfile.TemporaryDirectory() as folder:
            self.config(folder, hidden_size=256, intermediate_size=1024, num_hidden_layers=4)
            words = ("run.yaml", "--cluster", "2xcpu")
            error = run("plan", *words, "--form", "flattening", "--set", "run.memory_budget=1", cwd=folder)
            self.assertEqual(error.returncode, 2, error.stdout + error.stderr)
            needs = re.search(r"device 0 needs ([0-9.]+) MiB of 1 MiB \(run.memory_budget\) although models take "
                              r"turns, of which .+ [0-9.]+ MiB", error.stderr)
            self.assertIsNotNone(needs, error.stderr)
            least = math.ceil(float(needs[1])) + 1  # of the model that needs most
            forms = {budget: self.plan(*words, "--set", f"run.memory_budget={budget}", "--form", "flattening",
                                       cwd=folder)["plans"][0]["placement"] for budget in (least, 10 * least)}
            self.assertEqual(set(forms[least]["residency"].values()), {"swap"})
            self.assertFalse(forms[10 * least]["residency"])
            half = ("--set", f"run.memory_budget={least // 2}")
            self.assertEqual(run("plan", *words, *half, "--layouts", "dp", cwd=folder).returncode, 2)
            self.assertTrue(self.plan(*words, *half, cwd=folder)["plans"])  # of layouts of every kind

    def test_every_option_gets_the_nearest_choice(self):
        for option, value, remedy in (
                ("--staleness", "17", "16"), ("--rows", "0", "1"), ("--rows", "1.6", "2"), ("--updates", "-1", "1"),
                ("--form", "separate", "'separation'"), ("--backend", "nemo", "'nemo-rl'"),
                ("--layouts", "all", "'any'"), ("--updates", "2000", "--updates 512"),
                ("--micro-batch", "5000", "--micro-batch 512"), ("--completion", "512.5", "--completion 512"),
                ("--completion", "100000", "--completion 1792"),
                ("--fix", "policy_trainer.train=micro_batch:100000", "micro_batch:512"),
                ("--completion", "mean:900", "mean:900,0.8,3600"), ("--prompt", "-512", "512"),
                ("--sweep", "devices=0", "devices=1"), ("--sweep", "staleness=17", "staleness=16"),
                ("--price", "H100=2", "A100-80=2"), ("--lora", "policy_trainr=8", "'policy_trainer'"),
                ("--lora", "policy_trainer=0", "policy_trainer=1"), ("--shadow", "policy", "'value'"),
                ("--device", "A100.memory=1e9", "'memory_bytes'"),
                ("--constant", "update_seconds=-1", "update_seconds=0"),
                ("--fix", "policy=tp:4", "'policy.generate'"), ("--fix", "policy.generate=zero:4", "zero:3"),
                ("--output", "/no/such/plan.yaml", "/plan.yaml"), ("--modle", "llama2-7b", "--models")):
            at = FLOW.index(option) if option in FLOW else len(FLOW)
            error = self.refused("plan", *FLOW[:at], *FLOW[at + 2:], option, value)
            self.assertTrue(error.rstrip().endswith(f"; try {remedy}"), (option, value, error))


if __name__ == "__main__":
    unittest.main()
