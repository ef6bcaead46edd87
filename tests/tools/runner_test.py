"""tools/run_tests.py and .ci/run: what fails, is skipped or ends without a report must show."""
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import run_tests  # noqa: E402
import sanitize  # noqa: E402


class Runner(unittest.TestCase):
    SOURCE = """
import unittest
class Case(unittest.TestCase):
    def test_good(self): pass
    def test_bad(self): self.assertEqual(1, 2)
    def test_none(self): self.skipTest("no data here")
"""

    def test_counts_and_reasons(self):
        with tempfile.TemporaryDirectory() as scratch:
            file = pathlib.Path(scratch) / "made_up_test.py"
            file.write_text(self.SOURCE)
            environment = run_tests.environment_of(pathlib.Path(scratch))
            result = run_tests.run_program(run_tests.Program("system", file), 30, environment)
        self.assertEqual(result.passes, ["made_up_test.Case.test_good"])
        self.assertEqual([name for name, _ in result.failures], ["made_up_test.Case.test_bad"])
        self.assertEqual(result.skips, [("made_up_test.Case.test_none", "no data here")])
        self.assertEqual(sorted(test for _, test in result.times),
                         [f"made_up_test.Case.test_{name}" for name in ("bad", "good", "none")])

    REPORT = "<testsuites><testcase classname='Case' name='{}' status='run'>{}</testcase></testsuites>"

    def program(self, scratch: str, name: str, script: str) -> run_tests.Program:
        """A shell script in place of a gtest program; $REPORT is where its report belongs."""
        made = run_tests.Program("unit", pathlib.Path(scratch) / name)
        find_report = "for word; do case $word in --gtest_output=xml:*) REPORT=${word#*:};; esac; done\n"
        made.path.write_text(f"#!/bin/sh\n{find_report}{script}")
        made.path.chmod(0o755)
        return made

    def test_without_a_report_it_fails(self):
        with tempfile.TemporaryDirectory() as scratch:
            environment = run_tests.environment_of(pathlib.Path(scratch))
            for script, said in (("exit 0\n", "without a report"),
                                 ("echo '<testsuites></testsuites>' > $REPORT\n", "a report without tests")):
                with self.subTest(said):
                    result = run_tests.run_program(self.program(scratch, "quiet_test", script), 30, environment)
                    self.assertEqual(len(result.failures), 1)
                    self.assertIn(said, result.failures[0][1])
            one = f'echo "{self.REPORT.format("good", "")}" > $REPORT\n'
            result = run_tests.run_program(self.program(scratch, "one_test", one), 30, environment)
            self.assertEqual((result.passes, result.failures), (["Case.good"], []))

    def test_what_a_sanitizer_reports_is_shown_with_its_test(self):
        race = "WARNING: ThreadSanitizer: data race (pid=7)\n  Write of size 8\nSUMMARY: ThreadSanitizer: data race"
        later = "\n".join(f"[ RUN      ] Later.number{i}" for i in range(50))
        with tempfile.TemporaryDirectory() as scratch:
            script = (f"cat <<'E'\n[ RUN      ] Early.races\n{race}\n{later}\nE\n"
                      f'echo "{self.REPORT.format("good", "")}" > $REPORT\nexit 66\n')
            result = run_tests.run_program(self.program(scratch, "race_test", script), 30,
                                           run_tests.environment_of(pathlib.Path(scratch)))
        (_, message), = result.failures
        self.assertIn(f"exit code 66\n-- in Early.races\n{race}\n[ RUN      ] Later.number10\n", message)

    def run_main(self, scratch: str, script: str, *words: str) -> tuple:
        """(exit code, lines) of the runner over a build of one program, e2e_test, which runs once more reparsed."""
        build = pathlib.Path(scratch)
        path = self.program(scratch, "e2e_test", script).path
        (build / "tests.txt").write_text(f"system {path}\n")
        argv = ["run_tests.py", scratch, "--only", "e2e", *words]
        with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(io.StringIO()) as shown, \
                mock.patch.object(run_tests, "SHARED", build / "nowhere"):
            code = run_tests.main()
        return code, shown.getvalue().splitlines()

    def test_a_test_that_runs_twice_counts_once(self):
        good = f'echo "{self.REPORT.format("good", "")}" > $REPORT\n'
        failure, skip = "<failure>no</failure>", "<skipped message='none here'/>"
        with tempfile.TemporaryDirectory() as scratch:
            code, lines = self.run_main(scratch, good)
            self.assertEqual((code, lines[-1]), (0, "1 passed, 0 failed, 0 skipped"))
            self.assertEqual(lines[-2], "once more, not in the sum: e2e_test (reparsed): 1 passed, 0 failed, 0 skipped")
            for part, total, code_of in ((failure, "0 passed, 1 failed, 0 skipped", 1),
                                         (skip, "0 passed, 0 failed, 1 skipped", 1)):
                again = f'[ -z "$COLLIMATE_TEST_REPARSE" ] || echo "{self.REPORT.format("good", part)}" > $REPORT\n'
                code, lines = self.run_main(scratch, good + again)  # in the second run alone
                self.assertEqual((code, lines[-1]), (code_of, total))
            code, lines = self.run_main(scratch, "exit 3\n")  # of no test: it ends so in both runs
            self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed, 0 skipped"))

    def test_a_part_is_run_by_its_filter(self):
        with tempfile.TemporaryDirectory() as scratch:
            build = pathlib.Path(scratch)
            (build / "bin").mkdir()
            programs = ("unit base_test", "unit plan_test", "system parity_test", "system e2e_test")
            (build / "tests.txt").write_text("".join(f"{p.replace(' ', f' {build}/bin/')}\n" for p in programs))
            self.program(scratch, "bin/parity_test", 'echo "$@"; exit 1\n')
            chosen = run_tests.programs(build, "unit", [], ["plan_test=-A.b", "parity_test=A.*:B.c", "lost_test=*"])
            self.assertEqual([(p.kind, p.name, p.part) for p in chosen],
                             [("unit", "base_test", ""), ("unit", "plan_test", "-A.b"),
                              ("system", "parity_test", "A.*:B.c"), ("system", "lost_test", "*")])
            parity, lost = (run_tests.run_program(p, 30, run_tests.environment_of(build)) for p in chosen[2:])
        self.assertIn("--gtest_filter=A.*:B.c", parity.failures[0][1])
        self.assertIn("was not built", lost.failures[0][1])

    def test_notes_are_shown(self):
        with tempfile.TemporaryDirectory() as scratch:
            noting = run_tests.Program("unit", pathlib.Path(scratch) / "note_test")
            noting.path.write_text("#!/bin/sh\necho 'note: no amx here'\necho 'a note: of another kind'\n")
            noting.path.chmod(0o755)
            result = run_tests.run_program(noting, 30, run_tests.environment_of(pathlib.Path(scratch)))
        self.assertEqual(result.notes, ["note: no amx here"])
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            run_tests.show(result)
        self.assertIn("\n  note: no amx here\n", shown.getvalue())

    def test_hanging_and_missing_programs_fail(self):
        with tempfile.TemporaryDirectory() as scratch:
            hanging = run_tests.Program("unit", pathlib.Path(scratch) / "hang_test")
            hanging.path.write_text("#!/bin/sh\nsleep 60\n")
            hanging.path.chmod(0o755)
            environment = run_tests.environment_of(pathlib.Path(scratch))
            self.assertIn("no end after 1 s", run_tests.run_program(hanging, 1, environment).failures[0][1])
            absent = run_tests.Program("unit", pathlib.Path(scratch) / "missing_test")
            missing = run_tests.run_program(absent, 1, environment)
        self.assertIn("was not built", missing.failures[0][1])

    def test_e2e_runs_once_more_reparsed(self):
        with tempfile.TemporaryDirectory() as scratch:
            build = pathlib.Path(scratch)
            showing = build / "e2e_test"  # fails with what it was given
            showing.write_text("#!/bin/sh\necho given=$COLLIMATE_TEST_REPARSE\nexit 1\n")
            showing.chmod(0o755)
            (build / "tests.txt").write_text(f"unit {build}/base_test\nsystem {showing}\n")
            chosen = run_tests.programs(build, "", ["base", "e2e"])
            environment = {**run_tests.environment_of(build), "COLLIMATE_TEST_REPARSE": ""}
            shown = [run_tests.run_program(p, 30, environment).failures[0][1] for p in chosen[1:]]
        self.assertEqual([p.name for p in chosen], ["base_test", "e2e_test", "e2e_test (reparsed)"])
        self.assertEqual([text.splitlines()[-1] for text in shown], ["given=", "given=1"])
        self.assertEqual([p.kind for p in chosen], ["unit", "system", "system"])

    def test_a_python_test_of_the_same_name_runs_once(self):
        with tempfile.TemporaryDirectory() as scratch:
            build = pathlib.Path(scratch)
            (build / "tests.txt").write_text(f"unit {build}/generate_test\n")
            chosen = run_tests.programs(build, "", ["generate"])
        self.assertEqual([(p.kind, p.path.suffix, p.name) for p in chosen],
                         [("unit", "", "generate_test"), ("system", ".py", "generate_test"),
                          ("unit", "", "generate_test (checked device)")])

    def test_the_longest_begin_first(self):
        good = f'echo "{self.REPORT.format("good", "")}" > $REPORT\n'
        with tempfile.TemporaryDirectory() as scratch:
            build = pathlib.Path(scratch)
            paths = [self.program(scratch, name, good).path for name in ("base_test", "fault_test", "e2e_test")]
            (build / "tests.txt").write_text("".join(f"unit {path}\n" for path in paths))
            argv = ["run_tests.py", scratch, "--only", "base", "fault", "e2e", "--jobs", "1", "--slowest", "1"]
            with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(io.StringIO()) as shown:
                run_tests.main()
        self.assertRegex(shown.getvalue(), r"(?s)e2e_test: .*e2e_test \(reparsed\): .*fault_test: .*base_test: ")
        self.assertRegex(shown.getvalue(), r"base_test: 1 passed, 0 failed, 0 skipped, [\d.]+ s \([\d.]+ of CPU\)\n")
        self.assertEqual(shown.getvalue().count("Case.good"), 1)


class Sanitizers(unittest.TestCase):
    """tools/sanitize.py over a build that lists three programs and a git that tells of one change."""

    def ends(self, minutes: str, head: str = "a") -> tuple:
        """(the folders whose tests ran, in order, what was printed)."""
        ran = []

        def run_all(programs: list, *_, **__) -> list:
            ran.extend(programs)
            return [run_tests.Result(name, passes=["x"]) for name in programs]

        with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()) as printed, \
                mock.patch.object(sys, "argv", ["sanitize.py", "asan", "--minutes", minutes]), \
                mock.patch.object(run_tests, "ROOT", pathlib.Path(scratch)), \
                mock.patch.object(sanitize.subprocess, "run"), \
                mock.patch.object(sanitize.changes, "changed_files", lambda: ("", ["x.md", "collimate/plan/y.h"])), \
                mock.patch.object(sanitize.changes, "git", lambda *_: head), \
                mock.patch.object(run_tests, "programs", lambda build, kind, only, parts, once: only), \
                mock.patch.object(run_tests, "run_all", run_all):
            build = pathlib.Path(scratch) / "build" / "asan"
            build.mkdir(parents=True)
            (build / "tests.txt").write_text("unit /b/base_test\nunit /b/plan_test\nsystem /b/fault_test\n")
            self.assertEqual(sanitize.main(), 0)
        return ran, printed.getvalue()

    def test_all_run_and_what_changed_comes_first(self):
        ran, printed = self.ends("60")
        self.assertEqual(ran[0], "plan")
        self.assertEqual(sorted(ran), sorted({"base", "plan", *sanitize.PARTS["asan"]}))
        self.assertNotIn("left", printed)
        self.assertNotEqual(ran, self.ends("60", head="b")[0])

    def test_what_there_is_no_time_for_is_named(self):
        with mock.patch.object(sanitize.time, "monotonic", side_effect=[0.0, 59.0, 61.0]):
            ran, printed = self.ends("1")
        self.assertEqual(len(ran), sanitize.AT_ONCE)
        left = printed.split("minutes are over: ")[1].splitlines()[0].split()
        self.assertEqual(sorted(ran + left), sorted({"base", "plan", *sanitize.PARTS["asan"]}))
        ran, printed = self.ends("-1")
        self.assertEqual(ran, [])
        self.assertTrue(printed.endswith("\n0 passed, 0 failed, 0 skipped\n"), printed)


class WholeOfCi(unittest.TestCase):
    """.ci/run over a make.sh that only says what each stage says at its end."""

    def ends(self, **said) -> tuple:
        """(exit code, last two lines); of each stage its last line and exit code."""
        stages = {"test": ("90 passed, 0 failed, 0 skipped", 0), "check": ("8 checks passed, 0 failures", 0),
                  "tidy": ("1 checks passed, 0 failures", 0),
                  "quickstart": ("a report", 0), "asan": ("50 passed, 0 failed, 0 skipped", 0),
                  "tsan": ("20 passed, 0 failed, 0 skipped", 0), "cuda": ("0 passed, 0 failed, 0 skipped", 0), **said}
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch) / "checkout"
            for name in (".ci", "tools"):
                (root / name).mkdir(parents=True)
            (root / ".ci" / "run").write_text((ROOT / ".ci" / "run").read_text())
            cases = "".join(f"{name}) cat <<'E'\n{lines}\nE\nexit {code};;\n" for name, (lines, code) in stages.items())
            asked = 'verb=$1; [ $verb != sanitize ] || verb=$2; [ "$*" != "check --only changed symbols" ] || verb=tidy'
            make = root / "tools" / "make.sh"
            make.write_text(f"#!/bin/sh\n{asked}\ncase $verb in\n{cases}esac\n")
            make.chmod(0o755)
            done = subprocess.run(["bash", root / ".ci" / "run"], capture_output=True, text=True,
                                  env={**os.environ, "PATH": "/usr/bin:/bin"})
        return done.returncode, done.stdout.splitlines()[-2:]

    def test_sanitizers_run_tests_again(self):
        code, lines = self.ends()
        self.assertEqual((code, lines[1]), (0, "102 passed, 0 failed, 0 skipped"))
        self.assertIn("90 test, 8 check, 1 tidy, 1 quickstart, 1 install, 1 archive", lines[0])
        self.assertTrue(lines[0].endswith("passed again under sanitizers, not in the sum: 70"), lines[0])

    def test_what_fails_in_a_rerun_fails(self):
        for stage, said, total in (("asan", ("48 passed, 2 failed, 0 skipped", 1), "102 passed, 2 failed, 0 skipped"),
                                   ("tsan", ("no count", 66), "102 passed, 1 failed, 0 skipped"),
                                   ("tsan", ("20 passed, 0 failed, 0 skipped", 1), "102 passed, 1 failed, 0 skipped"),
                                   ("test", ("90 passed, 0 failed, 0 skipped", 1), "102 passed, 1 failed, 0 skipped"),
                                   ("check", ("7 checks passed, 3 failures", 1), "101 passed, 3 failed, 0 skipped")):
            with self.subTest(stage=stage, said=said):
                code, lines = self.ends(**{stage: said})
                self.assertEqual((code, lines[1]), (1, total))

    def shown(self, program: str, passed: int, failed: list, skipped: list = ()) -> str:
        """Gives what the runner prints of one program, and its counts."""
        results = [run_tests.Result(program, passes=["x"] * passed, failures=[(name, "why") for name in failed],
                                    skips=[(name, "none: here") for name in skipped])]
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            run_tests.show(results[0])
        return f"{printed.getvalue()}{passed} passed, {len(failed)} failed, {len(skipped)} skipped"

    def test_a_test_that_fails_in_several_stages_fails_once(self):
        first = self.shown("host_test (checked device)", 87, ["A.both", "host_test (checked device) (A.ends)"],
                           ["A.none"])
        asan = self.shown("host_test", 40, ["A.both", "A.new", "host_test (A.ends)", "host_test (A.leaks)"], ["A.none"])
        tsan = self.shown("host_test", 30, ["A.new", "A.none"], ["A.late"])
        for said, total in (({"test": (first, 1)}, "99 passed, 2 failed, 1 skipped"),
                            ({"test": (first, 1), "asan": (asan, 1)}, "98 passed, 4 failed, 1 skipped"),
                            ({"test": (first, 1), "asan": (asan, 1), "tsan": (tsan, 1)},
                             "97 passed, 5 failed, 1 skipped")):
            code, lines = self.ends(**said)
            self.assertEqual((code, lines[1]), (1, total))
        other = self.shown("base_test", 30, ["A.both"])  # is another program's, and had passed before
        code, lines = self.ends(test=(first, 1), asan=(other, 1))
        self.assertEqual(lines[1], "98 passed, 3 failed, 1 skipped")


if __name__ == "__main__":
    unittest.main()
