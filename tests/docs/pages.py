"""The tests of the documents share this: pages, their fenced blocks, the program."""
import dataclasses
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BIN = pathlib.Path(os.environ["COLLIMATE_BIN_DIR"]).resolve()
PATIENCE = 600  # seconds; what takes longer hangs
FENCE = re.compile(r"^```(\w+)(?: (\w+)=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclasses.dataclass
class Block:
    language: str
    attribute: str  # as title=sft.yaml: a name, and
    value: str
    text: str


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def blocks_of(page: str) -> list:
    return [Block(language, name or "", value or "", text) for language, name, value, text in FENCE.findall(page)]


def run(commands: str, directory: pathlib.Path) -> str:
    """Standard output of bash commands, with `collimate` on the PATH. AssertionError unless they end with 0."""
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=directory, env=environment,
                          capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{commands}\nended with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout
