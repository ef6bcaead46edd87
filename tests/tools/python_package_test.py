"""`import collimate` says which libraries are missing, and its version of torch is the pinned one."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(os.environ["COLLIMATE_BIN_DIR"]).parent / "python"


def run_python(*arguments: str, site: str = "") -> subprocess.CompletedProcess:
    """A Python that has the package and, of all others, those of `site`."""
    path = f"{PACKAGE}:{site}" if site else str(PACKAGE)
    return subprocess.run([sys.executable, "-S", *arguments], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": path})


class Import(unittest.TestCase):
    def test_torch_that_is_missing_or_another(self):
        with tempfile.TemporaryDirectory() as site:
            for found, version in (("none", ""), ("2.10.1", "2.10.1+cu130")):
                if version:
                    info = pathlib.Path(site) / f"torch-{version}.dist-info"
                    info.mkdir()
                    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
                done = run_python("-c", "import collimate", site=site)
                self.assertIn("ImportError: [collimate] expected torch 2.11.0, whose libraries it computes with, got "
                              f"{found}; try pip install --no-deps torch==2.11.0 ", done.stderr)

    def test_pins_are_those_of_the_build(self):
        library = (ROOT / "python/collimate/library.py").read_text()
        requirements = (ROOT / "tools/requirements.txt").read_text()
        pins = dict(re.findall(r"^(torch|nvidia\S+)==(\S+)$", requirements, re.MULTILINE))
        self.assertEqual(re.search(r'TORCH = "(\S+)"', library)[1], pins.pop("torch"))
        for name, version in pins.items():
            self.assertIn(f"{name}=={version}", library)

    def test_a_rewards_worker_needs_none_of_it(self):
        done = run_python("-m", "collimate.reward_worker", "none.py", "score")
        self.assertNotIn("ImportError", done.stderr)


if __name__ == "__main__":
    unittest.main()
