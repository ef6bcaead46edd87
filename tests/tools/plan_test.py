"""The verbs plan and simulate as a user calls them."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path(os.environ["COLLIMATE_BIN_DIR"]) / "collimate"
FLOW = ["--flow", "ppo", "--models", "policy=llama2-7b,reward=opt-1.3b", "--cluster", "8xA100-80", "--rows", "512",
        "--prompt", "256", "--completion", "mean:300,0.8,1024"]


def run(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)


class Plan(unittest.TestCase):
    def test_a_plan_file_says_what_it_is_for(self):
        with tempfile.TemporaryDirectory() as folder:
            plan, page, trace = (os.path.join(folder, name) for name in ("plan.yaml", "plan.html", "trace.json"))
            planned = run("plan", *FLOW, "--output", plan, "--html", page, "--json")
            self.assertEqual(planned.returncode, 0, planned.stderr)
            best = json.loads(planned.stdout)["plans"][0]
            simulated = run("simulate", plan, "--trace", trace, "--json")
            self.assertEqual(simulated.returncode, 0, simulated.stderr)
            again = json.loads(simulated.stdout)
            self.assertAlmostEqual(again["period_seconds"], best["period_seconds"], places=6)
            self.assertEqual(again["placement"], best["placement"])
            self.assertEqual(again["misfit"], "")
            with open(trace, encoding="utf-8") as file:
                threads = {event["tid"] for event in json.load(file)["traceEvents"] if event["ph"] == "X"}
            self.assertTrue(set(range(8)) <= threads, threads)
            with open(page, encoding="utf-8") as file:
                self.assertIn("<svg", file.read())

    def test_a_sweep_says_what_more_devices_buy(self):
        swept = run("plan", *FLOW, "--sweep", "devices=8,16", "--json")
        self.assertEqual(swept.returncode, 0, swept.stderr)
        first, second = json.loads(swept.stdout)["sweep"]
        self.assertGreater(first["period_seconds"], second["period_seconds"])

    def test_wrong_input_gets_the_nearest_choice(self):
        def error(*words):
            done = run("plan", *words)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertEqual(done.stdout, "")
            return done.stderr

        def flow(models, cluster):
            return ("--flow", "ppo", "--models", models, "--cluster", cluster)

        self.assertIn("try 'llama2-7b'", error(*flow("llama2-7bb", "8xA100")))
        self.assertIn("try 'A100-80'", error(*flow("llama2-7b", "8xA200")))
        self.assertIn("from 1 to", error(*flow("llama2-7b", "0xA100")))
        self.assertIn("try 'policy'", error(*flow("polcy=llama2-7b", "8xA100")))
        too_large = error(*flow("llama3.1-405b", "8xA100-80"))
        self.assertRegex(too_large, r"of which \w+ .*GB.*; try \d+x8xA100-80")


if __name__ == "__main__":
    unittest.main()
