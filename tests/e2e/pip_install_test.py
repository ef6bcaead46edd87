"""`pip install .` into a new environment, with the wheels of tools/requirements.txt beside it: links to those of the
build in the place of a second download of 600 MB. The command and the package work there, with nothing of the build."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from python_support import PATIENCE, ROOT, config, demonstrations, problems, write_model

USE = """
import json, sys
import collimate
rows, demonstrations, values = json.load(open("given.json"))
def good(prompts, completions): return [float(len(c) == 3) for c in completions]
result = collimate.train(values, rows, [good], output="from-python")
print(collimate.__file__, len(result.metrics), len(collimate.generate(result.model, ["12="], max_tokens=4)))
print(collimate.generate(result.model, ["12="], max_tokens=9, regex="[0-4]{2}=")[0]["completion"])
import pyarrow, pyarrow.parquet
pyarrow.parquet.write_table(pyarrow.table({"prompt": [r["prompt"] for r in demonstrations],
                                           "completion": [r["completion"] for r in demonstrations]}), "rows.parquet")
"""
REWARD = """
import sys
def where(prompts, completions, **columns):
    return [float(sys.prefix == {prefix!r})] * len(prompts)
"""


class PipInstall(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.prefix = cls.root / "env"
        cls.run_command(sys.executable, "-m", "venv", "--without-pip", cls.prefix)
        cls.site = next(cls.prefix.glob("lib/python*/site-packages"))
        own = next((ROOT / ".venv").glob("lib/python*/site-packages"))
        for package in [*own.glob("torch*"), *own.glob("pyarrow*"), *own.glob("nvidia*")]:
            (cls.site / package.name).symlink_to(package.resolve())
        cls.run_command(sys.executable, "-m", "pip", "--python", cls.prefix / "bin/python", "install", "--no-index",
                        "--no-deps", "--disable-pip-version-check", ROOT)

    @classmethod
    def run_command(cls, *command) -> str:
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("PYTHON", "COLLIMATE_"))}
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=cls.root, env=environment)
        if done.returncode != 0:
            raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_nothing_of_it_lies_in_the_build(self):
        package = self.site / "collimate"
        for file in (next(package.glob("_native.*.so")), package / "bin/collimate"):
            lines = self.run_command("readelf", "-d", file).splitlines()
            paths = [line for line in lines if "RPATH" in line or "RUNPATH" in line]
            self.assertEqual(len(paths), 1, paths)
            for path in paths[0].rpartition("[")[2].rstrip("]").split(":"):
                self.assertTrue(path.startswith("$ORIGIN/"), paths)

    def test_the_package_and_the_command(self):
        model = write_model(self.root / "start")
        (self.root / "given.json").write_text(json.dumps([problems(20), demonstrations(20), config(model)]))
        printed = self.run_command(self.prefix / "bin/python", "-c", USE).split()
        self.assertEqual(printed[:3], [str(self.site / "collimate/__init__.py"), "3", "1"])
        self.assertRegex(printed[3], "^[0-4]{2}=$", "the package brings its engine along")

        command = self.prefix / "bin/collimate"
        self.assertTrue(self.run_command(command, "version").startswith("collimate "))
        (self.root / "rows.yaml").write_text(json.dumps(config(model, "sft", data={"train": "rows.parquet"})))
        self.run_command(command, "train", "rows.yaml", "--output", "from-parquet")
        (self.root / "reward.py").write_text(REWARD.format(prefix=str(self.prefix)))
        values = config(model, data={"train": "from-python/rows/train.jsonl"}, run={"iterations": 1})
        (self.root / "reward.yaml").write_text(json.dumps({**values, "reward": {"python": "reward.py:where"}}))
        self.run_command(command, "train", "reward.yaml", "--output", "with-reward")
        line = json.loads((self.root / "with-reward/metrics.jsonl").read_text())
        self.assertEqual(line["rewards/where/mean"], 1.0, "the reward ran under another Python than the environment's")


if __name__ == "__main__":
    unittest.main()
