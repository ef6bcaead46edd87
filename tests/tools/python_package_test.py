"""`import collimate` says which libraries are missing, its torch is the pinned one, and the documented command of pip
downloads no more than is promised."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

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


class Download(unittest.TestCase):
    """`pip install` as the documents say it, in a new environment: pip is asked what it would take."""
    MOST_BYTES = 700e6
    PAGES = ("README.md", "docs/python.md", "docs/install.md")
    COMMAND = re.compile(r"pip (install --no-deps -r tools/requirements\.txt \.)")

    def command(self) -> list:
        found = {command for page in self.PAGES for command in self.COMMAND.findall((ROOT / page).read_text())}
        self.assertEqual(len(found), 1, f"{self.PAGES} say it in one way")
        return found.pop().split()

    def taken(self, directory: pathlib.Path) -> dict:
        """The URL of each package that pip would install, by its name."""
        python, report = directory / "env/bin/python", directory / "report.json"
        subprocess.run([sys.executable, "-m", "venv", directory / "env"], check=True)
        done = subprocess.run([python, "-m", "pip", *self.command(), "--dry-run", "--quiet", "--report", report,
                               "--disable-pip-version-check"], capture_output=True, text=True, cwd=ROOT, check=False)
        if re.search("NewConnectionError|ConnectTimeout|NameResolution", done.stderr):
            self.skipTest("pip reaches no index")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {entry["metadata"]["name"]: entry["download_info"]["url"]
                for entry in json.loads(report.read_text())["install"]}

    def test_is_of_700_megabytes_at_most(self):
        with tempfile.TemporaryDirectory() as directory:
            taken = self.taken(pathlib.Path(directory))
        self.assertEqual(taken.pop("collimate"), ROOT.as_uri())
        pinned = re.findall(r"^(\S+)==", (ROOT / "tools/requirements.txt").read_text(), re.MULTILINE)
        self.assertEqual(sorted(taken), sorted(pinned))
        sizes = {}
        for name, url in taken.items():
            with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=60) as head:
                sizes[name] = int(head.headers["Content-Length"])
        self.assertLessEqual(sum(sizes.values()), self.MOST_BYTES, sizes)
        self.assertGreater(sum(sizes.values()), 100e6, f"torch alone is larger: {sizes}")


if __name__ == "__main__":
    unittest.main()
