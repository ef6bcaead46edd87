"""The program of PyPI's wandb that `wandb sync` runs reads what `log.wandb` writes."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from serve_support import PATIENCE, PROGRAM, ROOT, make_model

READER = ROOT / ".test-packages/wandb/bin/wandb-core"
BLOCK = 1 << 15  # bytes of the file's blocks, over which long records go


@unittest.skipUnless(READER.is_file(), "wandb is not in .test-packages")
class OfflineRun(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        make_model(self.root / "model")
        (self.root / "rows.jsonl").write_text('{"prompt": "1:", "completion": "2"}\n')
        (self.root / "run.yaml").write_text("recipe: sft\nmodels: {policy: model}\ndata: {train: rows.jsonl}\n"
                                            "train: {samples_per_update: 1}\nlog: {wandb: true}\n")

    def output(self, *command) -> str:
        done = subprocess.run(command, cwd=self.root, env={**os.environ, "HOME": str(self.root)}, capture_output=True,
                              text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def train(self, iterations: int) -> pathlib.Path:
        self.output(PROGRAM, "train", "run.yaml", "--set", f"run.iterations={iterations}")
        (file,) = (self.root / "runs/run/wandb").glob("*/*.wandb")
        return file

    def test_a_run_and_one_that_goes_on(self):
        file = self.train(40)
        self.assertRegex(str(file.relative_to(self.root)), r"/offline-run-\d{8}_\d{6}-([0-9a-z]{8})/run-\1\.wandb$")
        self.assertGreater(file.stat().st_size, BLOCK)
        self.check(file, 40)
        marker = file.with_suffix(".wandb.synced")
        marker.touch()
        self.assertEqual(self.train(44), file)
        self.assertFalse(marker.exists(), "what came since is to be uploaded")
        self.check(file, 44)

    def check(self, file: pathlib.Path, iterations: int):
        shown = self.output(READER, "leet", "inspect", "--no-observability", "--json", "--run-file", str(file))
        records = [json.loads(line) for line in shown.splitlines()]
        self.assertEqual([one["num"] for one in records], list(range(1, len(records) + 1)))
        self.assertEqual([one["type"] for one in records], ["run", *["history", "summary"] * iterations, "exit"])
        run = records[0]["run"]
        self.assertEqual((run["project"], run["display_name"]), ("collimate", "run"))
        self.assertEqual(run["config"]["update"]["recipe"], "sft")
        self.assertEqual(run["config"]["update"]["run"]["iterations"], iterations)
        self.assertEqual(records[-1]["exit"]["exit_code"], 0)
        metrics = map(json.loads, (self.root / "runs/run/metrics.jsonl").read_text().splitlines())
        for told, record, summary in zip(metrics, records[1:-1:2], records[2:-1:2], strict=True):
            values = record["history"]["item"]
            self.assertEqual(summary["summary"]["update"], values)
            self.assertEqual((values.pop("_step"), record["history"]["step"]["num"]), (told["step"], told["step"]))
            self.assertEqual(values.pop("_runtime"), told["time_seconds"])
            values.pop("_timestamp")
            self.assertEqual(values, {name: told[name] for name in told if name not in ("step", "time_seconds")})


if __name__ == "__main__":
    unittest.main()
