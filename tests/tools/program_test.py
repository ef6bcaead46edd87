"""These tests ask what the linked program loads, and in which order it prints on one terminal."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ["COLLIMATE_BIN_DIR"]) / "collimate"


class Libraries(unittest.TestCase):
    def test_one_openmp_runtime_and_no_gpu_half(self):
        done = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True)
        loaded = [line.split()[0] for line in done.stdout.splitlines()]
        self.assertEqual(sum("gomp" in name or "iomp" in name for name in loaded), 1, done.stdout)
        self.assertNotIn("not found", done.stdout)
        self.assertFalse([name for name in loaded if name in ("libtorch.so", "libtorch_cuda.so")], done.stdout)


class Check(unittest.TestCase):
    SHAPE = {"model_type": "llama", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
             "num_key_value_heads": 2, "intermediate_size": 16, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
             "vocab_size": 1024}
    CONFIG = """recipe: sft
models: {policy: {path: model, from_scratch: true}}
data: {train: rows.jsonl}
train: {warmup_updates: 50}
run: {epochs: 1}
"""

    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="collimate-check-")))
        shutil.copytree(ROOT / "collimate/text/testdata/byte_level", self.directory / "model")
        (self.directory / "model/config.json").write_text(json.dumps(self.SHAPE))
        rows = ({"prompt": f"{i}=", "completion": "1"} for i in range(40))
        (self.directory / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (self.directory / "run.yaml").write_text(self.CONFIG)

    def test_what_is_wrong_comes_last_and_once(self):
        for words in (["check", "run.yaml"], ["check", "run.yaml", "--all"], ["train", "run.yaml", "--dry-run"]):
            done = subprocess.run([PROGRAM, *words], cwd=self.directory, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stdout)
            wrong = ("[train.warmup_updates] expected fewer than the run's 2 updates, got 50; try a shorter warm-up, "
                     "or more run.epochs\n")
            self.assertTrue(done.stdout.endswith(wrong), done.stdout)
            self.assertEqual(done.stdout.count("[train.warmup_updates]"), 1, done.stdout)
            self.assertIn("batch: 32 rows per iteration\n", done.stdout)  # by default


if __name__ == "__main__":
    unittest.main()
