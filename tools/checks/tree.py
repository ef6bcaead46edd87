"""The files of the checkout and what they include."""
import dataclasses
import functools
import hashlib
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CODE = (".h", ".cpp", ".cc", ".inc", ".cu", ".cuh")  # .cc: a library of its own, outside the pattern of the folders
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


@dataclasses.dataclass(frozen=True, order=True)
class Failure:
    path: str  # relative to the root
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@functools.cache
def files(*endings: str) -> tuple:
    """Relative paths of what git tracks or would track, with one of the endings."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--deduplicate"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.splitlines()
    return tuple(sorted(p for p in listed if p.endswith(endings) and (ROOT / p).is_file()))


@functools.cache
def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


@functools.cache
def lines(path: str) -> tuple:
    return tuple(text(path).splitlines())


@functools.cache
def includes(path: str) -> tuple:
    """(line number, '"' or '<', name) of each #include."""
    found = ((number, INCLUDE.match(line)) for number, line in enumerate(lines(path), 1))
    return tuple((number, m[1], m[2]) for number, m in found if m)


@functools.cache
def closure(path: str) -> frozenset:
    """The file and all of our own files that it includes, directly or not."""
    seen, todo = set(), [path]
    while todo:
        current = todo.pop()
        if current in seen or not (ROOT / current).is_file():
            continue
        seen.add(current)
        todo += [name for _, quote, name in includes(current) if quote == '"']
    return frozenset(seen)


def digest(path: str, *more: str) -> str:
    """Hash of a file, of everything of ours that it includes, and of `more`."""
    total = hashlib.sha256("\0".join(more).encode())
    for name in sorted(closure(path)):
        total.update(name.encode() + b"\0" + text(name).encode() + b"\0")
    return total.hexdigest()


CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "collimate" / "check"


class Passed:
    """Remembers by digest what passed in an earlier run of any checkout, so that only changes are looked at again."""

    def __init__(self, name: str):
        self.path = CACHE / name
        self.before = set(self.path.read_text().split()) if self.path.exists() else set()
        self.now = set()

    def __contains__(self, key: str) -> bool:
        if key in self.before:
            self.now.add(key)
        return key in self.before

    def add(self, key: str) -> None:
        self.now.add(key)

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("\n".join(sorted(self.before | self.now)) + "\n")
