#!/usr/bin/env python3
"""Counts lines of code by folder, tests apart: tools/count_lines.py [--list tests|production]

Counted are the lines, blank ones and comments among them, of what git tracks with the endings of C++, Python and shell
below collimate/, bench/, tools/ and python/; and tests/ and examples/ beside them. A file is of the tests when it
  - lies below tests/, or
  - is called *_test.*, or
  - is a header or .inc that some test includes, directly or not, and no other source does.
Lines that move from one folder to another stay in the sum. The last line is the sum of production.
"""
import argparse
import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from checks.includes import TEST  # noqa: E402
from checks.tree import CODE, closure, files, text  # noqa: E402

PRODUCTION = ("collimate", "bench", "tools", "python")
HEADERS = (".h", ".inc", ".cuh")


def named_as_test(path: str) -> bool:
    return path.startswith("tests/") or TEST.search(path) is not None


def test_files(paths: list, reached=closure) -> set:
    """Gives the paths that are tests or serve tests alone; `reached(source)`: what it includes, directly or not."""
    tests = {p for p in paths if named_as_test(p)}
    sources = [p for p in paths if not p.endswith(HEADERS)]
    by_tests = {r for p in sources if p in tests for r in reached(p)}
    by_others = {r for p in sources if p not in tests for r in reached(p)}
    return tests | {p for p in paths if p.endswith(HEADERS) and p in by_tests and p not in by_others}


def folder_of(path: str) -> str:
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "collimate" and len(parts) > 2 else parts[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", choices=["tests", "production"], help="the files that count so, each with its lines")
    options = parser.parse_args()
    paths = [p for p in files(*CODE, ".py", ".sh") if p.split("/")[0] in (*PRODUCTION, "tests", "examples")]
    tests = test_files(paths)
    if options.list:
        for path in (p for p in paths if (p in tests) == (options.list == "tests")):
            print(f"{text(path).count(chr(10)):6} {path}")
        return 0
    lines, count = collections.Counter(), collections.Counter()
    for path in paths:
        key = (folder_of(path), path in tests)
        lines[key] += text(path).count("\n")
        count[key] += 1
    print(f"{'folder':20} {'production':>10} {'files':>6} {'tests':>8} {'files':>6}")
    for folder in sorted({folder for folder, _ in lines}):
        print(f"{folder:20} {lines[folder, False]:10} {count[folder, False]:6} "
              f"{lines[folder, True]:8} {count[folder, True]:6}")
    counted = [key for key in lines if key[0].split("/")[0] in PRODUCTION and not key[1]]
    of_tests = [key for key in lines if key[1]]
    print(f"tests: {sum(lines[k] for k in of_tests)} lines in {sum(count[k] for k in of_tests)} files")
    print(f"{' '.join(PRODUCTION)}: {sum(lines[k] for k in counted)} lines in {sum(count[k] for k in counted)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
