"""The tutorials of docs/start do what they say: their blocks run in order, in one new directory, as a reader would.

A fenced block with `title=NAME` is written to that file. A ```bash block runs, with `collimate` on the PATH. A ```text
block is the standard output of the commands before it: `…` stands for anything within a line, and a line `…` alone for
any number of lines. Other blocks are for the reader alone.
"""
import dataclasses
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ["COLLIMATE_BIN_DIR"]).resolve()
PATIENCE = 600  # seconds; what takes longer hangs
FENCE = re.compile(r"^```(\w+)(?: title=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclasses.dataclass
class Block:
    language: str
    title: str
    text: str


def blocks_of(page: str) -> list:
    return [Block(language, title or "", text) for language, title, text in FENCE.findall(page)]


def pattern_of(shown: str) -> str:
    """The regular expression that the output of a block has to match."""
    lines = [r"(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
             for line in shown.splitlines()]
    return "".join(lines)


def run(commands: str, directory: pathlib.Path) -> str:
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=directory, env=environment,
                          capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode != 0:
        raise AssertionError(f"{commands}ended with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


class Format(unittest.TestCase):
    def test_what_a_block_matches(self):
        self.assertRegex("a 1\nb\n", f"^{pattern_of('a …' + chr(10) + 'b')}$")
        self.assertRegex("x\ny\nb\n", f"^{pattern_of('…' + chr(10) + 'b')}$")
        self.assertNotRegex("a 1\nc\n", f"^{pattern_of('a …' + chr(10) + 'b')}$")

    def test_the_blocks_of_a_page(self):
        page = "Text.\n```bash\nls\n```\n```yaml title=a.yaml\na: 1\n```\n"
        self.assertEqual(blocks_of(page), [Block("bash", "", "ls\n"), Block("yaml", "a.yaml", "a: 1\n")])


class Tutorials(unittest.TestCase):
    def follow(self, page: pathlib.Path, directory: pathlib.Path) -> None:
        output = None
        for block in blocks_of(page.read_text(encoding="utf-8")):
            if block.title:
                (directory / block.title).write_text(block.text, encoding="utf-8")
            elif block.language == "bash":
                output = run(block.text, directory)
            elif block.language == "text":
                self.assertIsNotNone(output, f"{page.name} shows the output of no command:\n{block.text}")
                self.assertRegex(output, rf"\A{pattern_of(block.text)}\Z", f"{page.name} shows\n{block.text}")
                output = None

    def test_each_works_as_written(self):
        pages = sorted((ROOT / "docs/start").glob("*.md"))
        self.assertEqual(len(pages), 4)
        with tempfile.TemporaryDirectory(prefix="collimate-tutorials-") as scratch:
            for page in pages:
                with self.subTest(page.name):
                    self.follow(page, pathlib.Path(scratch))


if __name__ == "__main__":
    unittest.main()
