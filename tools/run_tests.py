#!/usr/bin/env python3
"""Runs the test programs of a build directory and adds up their results.

  tools/run_tests.py BUILD [--kind unit|system] [--only NAME...] [--part PROGRAM=FILTER...] [--jobs N]
                     [--timeout SECONDS] [--once] [--slowest N]

Programs come from BUILD/tests.txt; Python tests are tests/**/*_test.py and run with the kind `system`. Two run at a
time (--jobs), first those of LONGEST, so that none of them is left to run alone. --part names a program, of any kind,
of which only the tests run that the gtest filter names. A program named in AGAIN runs once more, in that environment,
with those of its tests and as a line of its own, but not with --once. A program has to leave a report with at least
one test: one that ends well without it has failed. Prints every failure, every skip with its reason and every line of a
program that begins with `note: `, which says what it did not compare on this machine. The last line is `N passed, N
failed, N skipped` and counts each test once: it has failed if it failed in any of its runs, and was skipped if it was
skipped in any and failed in none. What ran once more is said in the line before. --slowest prints the N tests that took
longest, too.
Exit code 1 on a failure, and on a skip when the shared data is there: then nothing has a reason to skip.
"""
import argparse
import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get("COLLIMATE_SHARED", ROOT.parent / "shared"))
# The first line of what a sanitizer found
REPORT = re.compile("WARNING: ThreadSanitizer|ERROR: (Address|Leak)Sanitizer|runtime error: ")
# program -> (what its second run is called, what is set for it, which of its tests: a gtest filter)
CHECKED = ("checked device", {"COLLIMATE_TEST_DEVICE": "checked"}, "")
# Files are read and written on the host, and threads as ranks compute each family by the same code: three in ten do.
CHECKED_MODEL = (*CHECKED[:2],
                 "-TorchFiles.*:HuggingFace.FormOfFiles*" + "".join(f":*/?*Parity.*/*{i}" for i in "1245689"))
# The quickstart, measured machines, times and memory have no messages that other tests of e2e_test have not.
AGAIN = {"e2e_test": ("reparsed", {"COLLIMATE_TEST_REPARSE": "1"},
                      "-Quickstart.*:AutoPlacement.*:Memory.*:*RewardFaults*Hangs"),
         "model_test": CHECKED_MODEL,
         **{f"{name}_test": CHECKED for name in ("train", "generate", "parity")}}
# Programs that take longest in some build, longest first
LONGEST = ("e2e_test", "fault_test", "tensor_test", "plan_test", "model_test", "generate_test", "flow_test",
           "comm_test", "text_test", "tutorials_test", "download_test", "parity_test", "eval_test")


@dataclasses.dataclass(frozen=True)
class Program:
    kind: str  # unit or system
    path: pathlib.Path
    again: str = ""  # what its second run is called
    part: str = ""  # a gtest filter; empty: all of its tests
    extra: dict = dataclasses.field(default_factory=dict)  # set in its environment

    @property
    def name(self) -> str:
        return f"{self.title} ({self.again})" if self.again else self.title

    @property
    def place(self) -> int:
        """Gives the program's place in the order in which programs begin."""
        return LONGEST.index(self.title) if self.title in LONGEST else len(LONGEST)

    @property
    def title(self) -> str:
        """Names the program itself, whichever of its runs this is."""
        return self.path.stem if self.path.suffix == ".py" else self.path.name


@dataclasses.dataclass
class Result:
    name: str
    title: str = ""  # of the program, the same for each of its runs
    again: bool = False
    passes: list = dataclasses.field(default_factory=list)  # tests
    failures: list = dataclasses.field(default_factory=list)  # (test, message)
    skips: list = dataclasses.field(default_factory=list)  # (test, reason)
    notes: list = dataclasses.field(default_factory=list)  # lines
    times: list = dataclasses.field(default_factory=list)  # (seconds, test)
    seconds: float = 0.0
    cpu_seconds: float = 0.0  # of it and of what it waited for


def read_xml(path: pathlib.Path, result: Result) -> None:
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        failures = case.findall("failure")
        skipped = case.find("skipped")
        result.times.append((float(case.get("time") or 0), name))
        if failures:
            result.failures.append((name, "\n".join(f.text or f.get("message", "") for f in failures)))
        elif skipped is not None:
            reason = (skipped.text or skipped.get("message") or "").strip().splitlines()
            reason = [line for line in reason if not line.startswith("/")] or reason  # drops gtest's file:line
            result.skips.append((name, " ".join(reason)))
        elif case.get("status", "run") == "run":
            result.passes.append(name)


def excerpt(output: str) -> str:
    """Up to three reports of sanitizers, each with the test that had begun before it, and the last 40 lines."""
    lines, shown = output.splitlines(), []
    for at in [i for i, line in enumerate(lines) if REPORT.search(line)][:3]:
        shown.append(f"-- in {last_started(chr(10).join(lines[:at]))}")
        block = lines[at:at + 80]
        ends = [i for i, line in enumerate(block) if line.startswith("SUMMARY: ")]
        shown += block[:ends[0] + 1 if ends else None]
    return "\n".join(shown + lines[-40:])


def last_started(output: str) -> str:
    started = [line.split("]", 1)[1].strip() for line in output.splitlines() if line.startswith("[ RUN ")]
    return started[-1] if started else "before the first test"


def run_program(program: Program, timeout: float, environment: dict) -> Result:
    path, result = program.path, Result(program.name, program.title, bool(program.again))
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
            command += [f"--gtest_filter={program.part}"] if program.part else []
        log = pathlib.Path(scratch) / "output"
        ending, result.cpu_seconds = execute(command, timeout, {**environment, "TMPDIR": f"{scratch}/tmp"}, log)
        output = log.read_text(errors="replace")
        result.notes = [line for line in output.splitlines() if line.startswith("note: ")]
        if report.exists():
            read_xml(report, result)
        if not ending and not (result.passes or result.failures or result.skips):
            ending = "ended with exit code 0 and a report without tests" if report.exists() else \
                "ended with exit code 0 and without a report"
        if ending and (not result.failures or REPORT.search(output)):
            result.failures.append((f"{result.name} ({last_started(output)})", f"{ending}\n{excerpt(output)}"))
    result.seconds = time.monotonic() - begin
    return result


def execute(command: list, timeout: float, environment: dict, output: pathlib.Path) -> tuple:
    """Runs it with its output in a file. Gives how it ended, '' for exit code 0, and its CPU seconds. What it left
    running is killed."""
    with output.open("w") as sink:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=sink,
                                   stderr=subprocess.STDOUT, process_group=0)
        begin, alarm = time.monotonic(), threading.Timer(timeout, os.killpg, (process.pid, signal.SIGKILL))
        alarm.start()
        _, status, used = os.wait4(process.pid, 0)
        alarm.cancel()
        process.returncode = code = os.waitstatus_to_exitcode(status)
        ending = "" if code == 0 else f"ended with exit code {code}" if code > 0 else f"killed by signal {-code}"
        if code == -signal.SIGKILL and time.monotonic() - begin >= timeout:
            ending = f"no end after {timeout:.0f} s"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return ending, used.ru_utime + used.ru_stime


def programs(build: pathlib.Path, kind: str, only: list, parts: list = (), once: bool = False) -> list:
    """Every Program that is to be run; `parts` are PROGRAM=FILTER."""
    listed = [line.split(" ", 1) for line in (build / "tests.txt").read_text().splitlines()]
    kinds = {pathlib.Path(p).name: k for k, p in listed}
    filters = {name: tests for name, _, tests in (part.partition("=") for part in parts)}
    found = [Program(k, pathlib.Path(p)) for k, p in listed if pathlib.Path(p).name not in filters]
    found += [Program("system", p) for p in sorted((ROOT / "tests").rglob("*_test.py"))]
    found += [Program(p.kind, p.path, again=again, part=tests, extra=extra)
              for p in found if p.path.name in AGAIN and not once for again, extra, tests in (AGAIN[p.path.name],)]
    found = [p for p in found if kind in ("", p.kind)]
    found = [p for p in found if not only or p.path.stem in only or p.path.stem.removesuffix("_test") in only]
    return found + [Program(kinds.get(name, "system"), build / "bin" / name, part=tests)
                    for name, tests in filters.items()]


def count_once(results: list) -> tuple:
    """(passed, failed, skipped) of distinct tests: the worst of a test's runs decides."""
    outcome = {}
    for r in results:
        for tests, rank in ((r.passes, 0), ([name for name, _ in r.skips], 1), ([name for name, _ in r.failures], 2)):
            for name in tests:
                key = (r.title, name.replace(r.name, r.title))  # an ending that no test owns is named after its run
                outcome[key] = max(rank, outcome.get(key, 0))
    ranks = list(outcome.values())
    return ranks.count(0), ranks.count(2), ranks.count(1)


def show(result: Result) -> None:
    state = "FAILED" if result.failures else "ok"
    print(f"{state:6} {result.name}: {len(result.passes)} passed, {len(result.failures)} failed, "
          f"{len(result.skips)} skipped, {result.seconds:.1f} s ({result.cpu_seconds:.1f} of CPU)", flush=True)
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


def run_all(chosen: list, build: pathlib.Path, timeout: float, jobs: int = 2) -> list:
    """Runs them, so many at a time, and shows each when it has ended."""
    results, environment = [], environment_of(build)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        tasks = [pool.submit(run_program, program, timeout, environment)
                 for program in sorted(chosen, key=lambda program: program.place)]
        for task in concurrent.futures.as_completed(tasks):
            results.append(task.result())
            show(results[-1])
    return results


def conclude(results: list) -> int:
    """Prints the sums, the last line among them, and gives the exit code."""
    passed, failed, skipped = count_once(results)
    for r in (r for r in results if r.again):
        print(f"once more, not in the sum: {r.name}: {len(r.passes)} passed, {len(r.failures)} failed, "
              f"{len(r.skips)} skipped")
    if skipped and SHARED.is_dir():
        print(f"a skip counts as an error because {SHARED} exists")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or (skipped and SHARED.is_dir()) or not passed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--kind", default="", choices=["", "unit", "system"])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--part", nargs="*", default=[], metavar="PROGRAM=FILTER")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=1500)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--slowest", type=int, default=0, metavar="N")
    options = parser.parse_args()
    build = options.build.resolve()
    chosen = programs(build, options.kind, options.only, options.part, options.once)
    results = run_all(chosen, build, options.timeout, options.jobs)
    times = sorted(((seconds, r.name, test) for r in results for seconds, test in r.times), reverse=True)
    for seconds, program, test in times[:options.slowest]:
        print(f"{seconds:7.1f} s  {program}  {test}")
    return conclude(results)


if __name__ == "__main__":
    sys.exit(main())
