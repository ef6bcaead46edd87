"""`collimate plan CONFIG` counts what recipes other than those of samples do."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path(os.environ["COLLIMATE_BIN_DIR"]).resolve() / "collimate"
TINY = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 256, "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-5}
CONFIG = """recipe: distill
models: {policy: {path: tiny}, teacher: {path: tiny}}
data: {train: rows.jsonl, max_tokens: 512}
"""


class RecipesTest(unittest.TestCase):
    def plan(self, *sets):
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            (work / "tiny").mkdir()
            (work / "tiny" / "config.json").write_text(json.dumps(TINY), encoding="utf-8")
            (work / "run.yaml").write_text(CONFIG, encoding="utf-8")
            words = [word for each in sets for word in ("--set", each)]
            done = subprocess.run([PROGRAM, "plan", "run.yaml", "--cluster", "2xcpu", "--json", *words], cwd=work,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            calls = json.loads(done.stdout)["plans"][0]["calls"]
            return {f'{call["model"]}.{call["function"]}': call["seconds"] for call in calls}

    def test_drawn_answers_take_time(self):
        given, drawn = self.plan(), self.plan("algorithm.on_policy_share=0.5", "rollout.completion_tokens=256")
        self.assertNotIn("policy.generate", given)
        generate = drawn["policy.generate"]
        self.assertGreater(generate, 0)
        longer = self.plan("algorithm.on_policy_share=0.5", "rollout.completion_tokens=512")["policy.generate"]
        self.assertGreater(longer, 1.5 * generate)


if __name__ == "__main__":
    unittest.main()
