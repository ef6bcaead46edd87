"""The verbs that tell of weights: plan --transfers, weights diff and dump."""
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path(os.environ["COLLIMATE_BIN_DIR"]).resolve() / "collimate"
TINY = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 256, "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5}
VALUES = 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 2 * 256 * 64 + 64
CONFIG = """recipe: grpo
models: {policy: {path: tiny, reduction_chunks: 2}}
reward: [{rule: exact}]
rollout: {prompts_per_iteration: 8, samples_per_prompt: 2, prompt_tokens: 16, completion_tokens: 16}
train: {samples_per_update: 8}
"""
PLACEMENT = ("placement={version: 1, devices: {count: 3, kind: cpu}, groups: {a: {devices: [0, 1], models: "
             "[policy_trainer]}, b: {devices: [2], models: [policy]}}, layouts: {policy_trainer: {train: {tp: 2}}}}")


def run(*words, cwd=None):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False, cwd=cwd)


def write_model(folder, tensors):
    """Tensors of one dim as F32 in a model's directory."""
    header, data = {}, b""
    for name, values in tensors.items():
        end = len(data) + 4 * len(values)
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [len(data), end]}
        data += struct.pack(f"<{len(values)}f", *values)
    text = json.dumps(header).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


class Transfers(unittest.TestCase):
    def test_they_are_those_of_the_placement_that_the_config_says(self):
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            (work / "tiny").mkdir()
            (work / "tiny" / "config.json").write_text(json.dumps(TINY), encoding="utf-8")
            (work / "run.yaml").write_text(CONFIG, encoding="utf-8")
            apart = run("plan", "run.yaml", "--transfers", "--json", "--set", PLACEMENT, cwd=folder)
            text = run("plan", "run.yaml", "--transfers", "--set", PLACEMENT, cwd=folder)
            alike = run("plan", "run.yaml", "--transfers", "--json", cwd=folder)
        for done in (apart, text, alike):
            self.assertEqual(done.returncode, 0, done.stderr)
        [link] = json.loads(apart.stdout)["transfers"]
        self.assertEqual(link["bytes"], 4 * VALUES)
        self.assertEqual(sum(route["bytes"] for route in link["routes"]), 4 * VALUES)
        self.assertEqual([(route["source"], route["destination"]) for route in link["routes"]], [(0, 2), (1, 2)])
        self.assertEqual(json.loads(alike.stdout)["transfers"][0]["in_place"], [0])
        self.assertIn("weights policy_trainer -> policy, after every training", text.stdout)

    def test_a_flow_is_planned_first(self):
        planned = run("plan", "--flow", "ppo", "--models", "policy=llama2-7b,reward=opt-1.3b",
                      "--cluster", "8xA100-80", "--transfers")
        self.assertEqual(planned.returncode, 0, planned.stderr)
        self.assertIn("weights policy_trainer -> policy", planned.stdout)


class Weights(unittest.TestCase):
    def test_diff_and_dump(self):
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            write_model(work / "a", {"same": [1, 2], "other": [1, 2, 3]})
            write_model(work / "b", {"same": [1, 2], "other": [1, 2.5, 3], "new": [1]})
            equal = run("weights", "diff", "a", "a", cwd=folder)
            unequal = run("weights", "diff", "a", "b", cwd=folder)
            as_json = run("weights", "diff", "a", "b", "--json", cwd=folder)
            listed = run("weights", "dump", "a", cwd=folder)
            values = run("weights", "dump", "a", "other", "-n", "2", cwd=folder)
            wrong = run("weights", "dump", "a", "none", cwd=folder)
        self.assertEqual((equal.returncode, equal.stdout), (0, "0 of 2 tensors differ\n"))
        self.assertEqual(unequal.returncode, 1)
        self.assertEqual(unequal.stdout, "new [1]: not in a, or of other sizes\n"
                         "other [3]: 1 values differ, by at most 0.5; the first at [1]: 2 and 2.5\n"
                         "2 of 3 tensors differ\n")
        self.assertEqual(json.loads(as_json.stdout)["differing"], 2)
        self.assertIn("other F32 [3]: 1 to 3, mean 2, norm 3.74166\n", listed.stdout)
        self.assertEqual(values.stdout, "[0] 1\n[1] 2\n")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("expected a tensor none, got none", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
