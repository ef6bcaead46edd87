"""examples/quickstart.ipynb, executed as it is written."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

from python_support import PACKAGE, PATIENCE, ROOT


class Notebook(unittest.TestCase):
    def test_its_model_learns(self):
        with tempfile.TemporaryDirectory() as home:
            path = os.pathsep.join([str(PACKAGE), os.environ["PYTHONPATH"]])
            done = subprocess.run([sys.executable, ROOT / "tools/run_notebook.py", ROOT / "examples/quickstart.ipynb"],
                                  capture_output=True, text=True, timeout=PATIENCE,
                                  env={**os.environ, "HOME": home, "PYTHONPATH": path, "TMPDIR": home})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        before, after = re.search(r"held-out accuracy (\S+) -> (\S+)", done.stdout).groups()
        self.assertGreater(float(after), float(before))


if __name__ == "__main__":
    unittest.main()
