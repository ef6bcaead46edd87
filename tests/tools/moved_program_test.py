"""A program finds its Python files and the Parquet reader beside itself, in the directory to which both were moved."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["COLLIMATE_BIN_DIR"]).resolve().parent
CONFIG = """recipe: grpo
models: {policy: {path: start, from_scratch: true}}
data: {train: problems.jsonl}
reward: [{python: "reward.py:score"}]
rollout: {prompts_per_iteration: 2, samples_per_prompt: 2, prompt_tokens: 8, completion_tokens: 6}
run: {iterations: 1}
"""


class MovedProgram(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "bin").mkdir()
        shutil.copy(BUILD / "bin/collimate", self.folder / "bin")
        (self.folder / "start").mkdir()
        shutil.copy(ROOT / "tests/golden/small/models/tiny/config.json", self.folder / "start")
        (self.folder / "start/tokenizer_config.json").write_text(json.dumps({"char_ords": list(range(48, 59))}))
        (self.folder / "problems.jsonl").write_text('{"prompt": "12:"}\n' * 2)
        (self.folder / "reward.py").write_text("def score(prompts, **columns):\n    return [1.0] * len(prompts)\n")
        (self.folder / "run.yaml").write_text(CONFIG)

    def check(self, *words: str) -> tuple:
        environment = {name: value for name, value in os.environ.items() if name != "COLLIMATE_PYTHON_PATH"}
        done = subprocess.run([self.folder / "bin/collimate", "check", "run.yaml", *words], cwd=self.folder,
                              env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def move(self, *names: str) -> None:
        target = self.folder / "lib/collimate"
        target.mkdir(parents=True)
        for name in names:
            shutil.copytree(BUILD / "lib/collimate" / name, target / name)

    def test_a_reward_in_python(self):
        code, said = self.check()
        self.assertEqual(code, 2, said)
        self.assertIn("[collimate.reward_worker] expected python/collimate beside the program's libraries, got none; "
                      "try installing again, or COLLIMATE_PYTHON_PATH=DIR", said)
        self.move("python")
        code, said = self.check()
        self.assertEqual(code, 0, said)

    def test_the_parquet_reader(self):
        (self.folder / "rows.parquet").write_text("not Parquet")
        code, said = self.check("--set", "data.train=rows.parquet")
        self.assertEqual(code, 2, said)
        self.assertIn("[parquet] expected a build with the Parquet reader, got none", said)


if __name__ == "__main__":
    unittest.main()
