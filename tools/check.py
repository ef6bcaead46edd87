#!/usr/bin/env python3
"""make check: one line `path:line: message` per failure, then `N checks passed, M failures`.

  tools/check.py [--build DIR] [--only NAME...]     names: table cycles lines shape functions names unreached links
                                                   headers format; clang-tidy, 14 s for eight sources, runs only when it
                                                   is named: tidy on all, changed on those that changed lately;
                                                   symbols, which needs all objects of `make test`, too
"""
import argparse
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from checks import compiler, documents, includes, lint, names  # noqa: E402
from checks.tree import ROOT  # noqa: E402
import unreached  # noqa: E402

CHECKS = {
    "table": lambda build: includes.check_table(),
    "cycles": lambda build: includes.check_cycles(),
    "lines": lambda build: lint.check_lines(),
    "shape": lambda build: lint.check_shape(),
    "functions": lambda build: lint.check_functions(),
    "names": lambda build: names.check_names(),
    "symbols": unreached.check_all,
    "unreached": lambda build: unreached.check_names(),
    "links": lambda build: documents.check_links(),
    "format": lambda build: compiler.check_format(),
    "headers": compiler.check_headers,
    "tidy": compiler.check_tidy,
    "changed": compiler.check_changed,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    usual = [name for name in CHECKS if name not in ("tidy", "changed", "symbols")]
    parser.add_argument("--only", nargs="*", default=usual, choices=list(CHECKS))
    options = parser.parse_args()
    failures, passed = 0, 0
    for name in options.only:
        begin = time.monotonic()
        found = sorted(CHECKS[name](options.build.resolve()))
        for failure in found:
            print(failure)
        print(f"{'ok' if not found else 'FAILED':6} {name}: {len(found)} failures, {time.monotonic() - begin:.1f} s",
              file=sys.stderr, flush=True)
        failures += len(found)
        passed += not found
    print(f"{passed} checks passed, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
