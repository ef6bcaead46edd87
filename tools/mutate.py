#!/usr/bin/env python3
"""Breaks the source on purpose and looks whether a test notices.

  tools/mutate.py [--build DIR] [--list] [WORD...]
  tools/mutate.py --table                            writes the table of CONTRIBUTING.md again

For each edit of tools/mutations.txt (those of which a WORD stands in the line; all without one) it applies the edit,
builds the test program, runs its filter and expects a failure; then it puts the file back, also after Ctrl-C. Before
that the filter must pass on the source as it is. A program `x_test.py` is that file of tests, over the package that the
build makes; its filter is `Case.test_*`. A file with changes that are not committed is refused. Prints a line
an edit and a table by folder. Exit code 1 when an edit survives, does not compile or no longer matches its file once.
"""
import argparse
import collections
import contextlib
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "tools" / "mutations.txt"
PAGE = ROOT / "CONTRIBUTING.md"
PAGE_TABLE = re.compile(r"^\| folder \| edits \| noticed by \|\n(\|.*\n)+", re.MULTILINE)
LIMIT_SECONDS = 300  # for one filter; an edit that makes it hang is noticed by that
WITHOUT_EDITS = {"collimate/cuda": "no edits: its tests need a GPU and a build of their own (`tools/make.sh cuda`)"}


@dataclasses.dataclass(frozen=True)
class Edit:
    file: str
    text: str
    replacement: str
    program: str
    filter: str

    @property
    def folder(self) -> str:
        return "/".join(self.file.split("/")[:2])

    def problem(self) -> str:
        """Why it cannot be applied; "" when it can."""
        path = ROOT / self.file
        if not path.is_file():
            return "there is no such file"
        found = path.read_text().count(self.text)
        return "" if found == 1 else f"its text stands there {found} times"


def parse(line: str) -> Edit:
    fields = line.split(" | ")
    if len(fields) != len(dataclasses.fields(Edit)):
        raise ValueError(f"[{LIST.name}] expected file | text | replacement | program | filter, got {line}")
    return Edit(*fields)


def edits(words: list) -> list:
    lines = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    return [parse(line) for line in lines if not words or any(word in line for word in words)]


@contextlib.contextmanager
def applied(edit: Edit):
    """While it lasts, the file holds the edit; then its bytes are as before, with a later time for the build to see."""
    path = ROOT / edit.file
    before = path.read_text()
    path.write_text(before.replace(edit.text, edit.replacement))
    try:
        yield
    finally:
        path.write_text(before)


def is_dirty(file: str) -> bool:
    return subprocess.run(["git", "diff", "--quiet", "HEAD", "--", file], cwd=ROOT).returncode != 0


def build(directory: pathlib.Path, program: str) -> str:
    """The end of what the compiler said; "" when it was content."""
    targets = ["collimate_native", "collimate"] if program.endswith(".py") else [program]
    done = subprocess.run(["ninja", "-C", str(directory), *targets], capture_output=True, text=True)
    return "" if done.returncode == 0 else "\n".join(done.stdout.splitlines()[-5:])


def outcome(directory: pathlib.Path, edit: Edit) -> str:
    """passed, failed, or none when the filter names no test."""
    with tempfile.TemporaryDirectory(prefix="collimate-mutate-", ignore_cleanup_errors=True) as scratch:
        report = pathlib.Path(scratch) / "report.xml"
        environment = {**os.environ, "TMPDIR": scratch}
        if edit.program.endswith(".py"):
            file, = (ROOT / "tests").rglob(edit.program)
            command = [sys.executable, str(ROOT / "tools" / "run_unittest.py"), str(file), str(report), edit.filter]
            environment |= {"COLLIMATE_BIN_DIR": str(directory / "bin"), "PYTHONPATH": str(ROOT / ".test-packages")}
        else:
            program = str(directory / "bin" / edit.program)
            command = [program, f"--gtest_filter={edit.filter}", f"--gtest_output=xml:{report}"]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=LIMIT_SECONDS,
                                  stdin=subprocess.DEVNULL, env=environment)
        except subprocess.TimeoutExpired:
            return "failed"
        if done.returncode != 0:
            return "failed"
        cases = ElementTree.parse(report).getroot().iter("testcase") if report.exists() else []
        return "passed" if any(case.get("status", "run") == "run" for case in cases) else "none"


def try_edit(directory: pathlib.Path, edit: Edit) -> str:
    """noticed, or what went wrong."""
    problem = edit.problem() or ("it has changes that are not committed" if is_dirty(edit.file) else "")
    if problem:
        return f"cannot be applied: {problem}"
    said = build(directory, edit.program)
    if said:
        return f"the source as it is does not build:\n{said}"
    before = outcome(directory, edit)
    if before != "passed":
        return f"on the source as it is {edit.program} {edit.filter} says: {before}"
    with applied(edit):
        said = build(directory, edit.program)
        if said:
            return f"does not compile:\n{said}"
        return "noticed" if outcome(directory, edit) == "failed" else "SURVIVED"


def table(results: list) -> str:
    tried, noticed = collections.Counter(), collections.Counter()
    for edit, result in results:
        tried[edit.folder] += 1
        noticed[edit.folder] += result == "noticed"
    rows = [f"| {folder} | {tried[folder]} | {noticed[folder]} |" for folder in sorted(tried)]
    return "\n".join(["| folder | edits | noticed |", "|---|---|---|", *rows])


def page_table() -> str:
    """The table of CONTRIBUTING.md: of each folder the number of edits, and the programs that have to notice them."""
    by_folder = collections.defaultdict(list)
    for edit in edits([]):
        by_folder[edit.folder].append(edit.program)
    cells = {folder: (len(programs), ", ".join(f"`{name}`" for name in sorted(set(programs))))
             for folder, programs in by_folder.items()} | {folder: (0, why) for folder, why in WITHOUT_EDITS.items()}
    rows = [f"| `{folder}` | {count} | {noticed} |\n" for folder, (count, noticed) in sorted(cells.items())]
    return "".join(["| folder | edits | noticed by |\n|---|---|---|\n", *rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD", help="a folder, a file, a program or other part of a line")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--list", action="store_true", help="only shows the chosen edits")
    parser.add_argument("--table", action="store_true", help="writes the table of CONTRIBUTING.md, and tries nothing")
    options = parser.parse_args()
    if options.table:
        PAGE.write_text(PAGE_TABLE.sub(lambda _: page_table(), PAGE.read_text()))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `applied` puts the file back
    chosen, results = edits(options.words), []
    try:
        for edit in chosen:
            results.append((edit, "listed" if options.list else try_edit(options.build.resolve(), edit)))
            print(f"{edit.file}: {edit.text} -> {edit.replacement}: {results[-1][1]}", flush=True)
    finally:
        for program in sorted({edit.program for edit, _ in results} if not options.list else ()):
            build(options.build.resolve(), program)  # of the source as it is again
    if options.list:
        return 0
    noticed = sum(result == "noticed" for _, result in results)
    print(f"{table(results)}\n{noticed} of {len(results)} edits noticed")
    return 0 if chosen and noticed == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
