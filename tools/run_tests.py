#!/usr/bin/env python3
"""Runs the test programs of a build directory and adds up their results.

  tools/run_tests.py BUILD [--kind unit|system] [--only NAME...] [--jobs N] [--timeout SECONDS]

Programs come from BUILD/tests.txt; Python tests are tests/**/*_test.py and run with the kind `system`. Unit tests run
two at a time, system tests alone. A program named in AGAIN runs once more, in that environment and as a line of its
own. Prints every failure, every skip with its reason and every line of a program that begins with `note: `, which says
what it did not compare on this machine; the last line is `N passed, N failed, N skipped`. Exit code 1 on a failure,
and on a skip when the shared data is there: then nothing has a reason to skip.
"""
import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get("COLLIMATE_SHARED", ROOT.parent / "shared"))
# program -> (what its second run is called, what is set for it)
AGAIN = {"e2e_test": ("reparsed", {"COLLIMATE_TEST_REPARSE": "1"})}


@dataclasses.dataclass(frozen=True)
class Program:
    kind: str  # unit or system
    path: pathlib.Path
    again: str = ""  # what its second run is called
    extra: dict = dataclasses.field(default_factory=dict)  # set in its environment

    @property
    def name(self) -> str:
        name = self.path.stem if self.path.suffix == ".py" else self.path.name
        return f"{name} ({self.again})" if self.again else name


@dataclasses.dataclass
class Result:
    name: str
    passed: int = 0
    failures: list = dataclasses.field(default_factory=list)  # (test, message)
    skips: list = dataclasses.field(default_factory=list)  # (test, reason)
    notes: list = dataclasses.field(default_factory=list)  # lines
    seconds: float = 0.0


def read_xml(path: pathlib.Path, result: Result) -> None:
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        failures = case.findall("failure")
        skipped = case.find("skipped")
        if failures:
            result.failures.append((name, "\n".join(f.text or f.get("message", "") for f in failures)))
        elif skipped is not None:
            reason = (skipped.text or skipped.get("message") or "").strip().splitlines()
            reason = [line for line in reason if not line.startswith("/")] or reason  # drops gtest's file:line
            result.skips.append((name, " ".join(reason)))
        elif case.get("status", "run") == "run":
            result.passed += 1


def last_started(output: str) -> str:
    started = [line.split("]", 1)[1].strip() for line in output.splitlines() if line.startswith("[ RUN ")]
    return started[-1] if started else "before the first test"


def run_program(program: Program, timeout: float, environment: dict) -> Result:
    path, result = program.path, Result(program.name)
    environment = {**environment, **program.extra}
    if not path.exists():
        result.failures.append((result.name, f"{path} was not built"))
        return result
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="collimate-test-", ignore_cleanup_errors=True) as scratch:
        report = pathlib.Path(scratch) / "report.xml"
        (pathlib.Path(scratch) / "tmp").mkdir()
        if path.suffix == ".py":
            environment = {**environment, "PYTHONPATH": str(ROOT / ".test-packages")}
            command = [sys.executable, str(ROOT / "tools" / "run_unittest.py"), str(path), str(report)]
        else:
            command = [str(path), f"--gtest_output=xml:{report}"]
        log = pathlib.Path(scratch) / "output"
        ending = execute(command, timeout, {**environment, "TMPDIR": f"{scratch}/tmp"}, log)
        output = log.read_text(errors="replace")
        result.notes = [line for line in output.splitlines() if line.startswith("note: ")]
        if report.exists():
            read_xml(report, result)
        if ending and not result.failures:
            tail = "\n".join(output.splitlines()[-40:])
            result.failures.append((f"{result.name} ({last_started(output)})", f"{ending}\n{tail}"))
    result.seconds = time.monotonic() - begin
    return result


def execute(command: list, timeout: float, environment: dict, output: pathlib.Path) -> str:
    """Runs it with its output in a file; how it ended, '' for exit code 0. What it left running is killed."""
    with output.open("w") as sink:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=sink,
                                   stderr=subprocess.STDOUT, process_group=0)
        try:
            code = process.wait(timeout=timeout)
            ending = "" if code == 0 else f"ended with exit code {code}" if code > 0 else f"killed by signal {-code}"
        except subprocess.TimeoutExpired:
            ending = f"no end after {timeout:.0f} s"
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    return ending


def programs(build: pathlib.Path, kind: str, only: list) -> list:
    """Every Program that is to be run."""
    listed = [line.split(" ", 1) for line in (build / "tests.txt").read_text().splitlines()]
    found = [Program(k, pathlib.Path(p)) for k, p in listed]
    found += [Program("system", p) for p in sorted((ROOT / "tests").rglob("*_test.py"))]
    found += [Program(p.kind, p.path, *AGAIN[p.name]) for p in found if p.name in AGAIN]
    found = [p for p in found if kind in ("", p.kind)]
    return [p for p in found if not only or p.path.stem in only or p.path.stem.removesuffix("_test") in only]


def show(result: Result) -> None:
    state = "FAILED" if result.failures else "ok"
    print(f"{state:6} {result.name}: {result.passed} passed, {len(result.failures)} failed, "
          f"{len(result.skips)} skipped, {result.seconds:.1f} s", flush=True)
    for name, message in result.failures:
        print(f"  FAILED {name}\n    " + message.strip().replace("\n", "\n    "), flush=True)
    for line in result.notes:
        print(f"  {line}", flush=True)
    for name, reason in result.skips:
        print(f"  skipped {name}: {reason or 'no reason given'}", flush=True)


def environment_of(build: pathlib.Path) -> dict:
    environment = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment["COLLIMATE_BIN_DIR"] = str(build / "bin")
    environment["ASAN_OPTIONS"] = "detect_container_overflow=0:strict_string_checks=1:detect_stack_use_after_return=1"
    environment["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
    environment["LSAN_OPTIONS"] = f"suppressions={ROOT}/tools/lsan.supp:print_suppressions=0"
    environment["TSAN_OPTIONS"] = f"suppressions={ROOT}/tools/tsan.supp:halt_on_error=0:exitcode=66"
    return environment


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--kind", default="", choices=["", "unit", "system"])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=900)
    options = parser.parse_args()
    build = options.build.resolve()
    environment = environment_of(build)
    chosen = programs(build, options.kind, options.only)
    results = []
    for kind, workers in (("unit", options.jobs), ("system", 1)):
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            tasks = [pool.submit(run_program, program, options.timeout, environment)
                     for program in chosen if program.kind == kind]
            for task in concurrent.futures.as_completed(tasks):
                results.append(task.result())
                show(results[-1])
    passed = sum(r.passed for r in results)
    failed = sum(len(r.failures) for r in results)
    skipped = sum(len(r.skips) for r in results)
    if skipped and SHARED.is_dir():
        print(f"a skip counts as an error because {SHARED} exists")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or (skipped and SHARED.is_dir()) or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
