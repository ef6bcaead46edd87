"""The checks must be able to fail: each is shown something wrong."""
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from checks import compiler, documents, includes, lint, names, tree  # noqa: E402
import count_lines  # noqa: E402
import mutate  # noqa: E402


class Includes(unittest.TestCase):
    def test_table_is_read(self):
        self.assertEqual(includes.modules()["shape"], ({"base"}, False))
        self.assertTrue(includes.modules()["tensor"][1])

    def test_folders(self):
        self.assertEqual(includes.own_failure("collimate/text/a.h", "collimate/base/error.h"), "")
        self.assertIn("graph/ may not include tensor/",
                      includes.own_failure("collimate/graph/a.cpp", "collimate/tensor/tape.h"))
        self.assertIn("missing in cmake/modules.cmake",
                      includes.own_failure("collimate/x/a.h", "collimate/base/error.h"))

    def test_production_includes_nothing_of_the_tests(self):
        header = "tests/support/small_task.h"
        self.assertIn("tests alone include tests/", includes.own_failure("collimate/graph/a.cpp", header))
        self.assertIn("tests alone include tests/", includes.own_failure("bench/a_bench.cpp", header))
        for path in ("collimate/graph/a_test.cpp", "tests/support/graph/b.h", "tests/e2e/a.h"):
            self.assertEqual(includes.own_failure(path, header), "")

    def test_what_serves_the_tests_of_a_folder_includes_what_the_folder_may(self):
        for path in ("tests/support/graph/a.h", "collimate/graph/a_test.cpp"):
            self.assertEqual(includes.own_failure(path, "collimate/graph/graph.h"), "")
            for target in ("collimate/tensor/tape.h", "tests/support/tensor/b.h"):
                self.assertIn("graph/ may not include tensor/", includes.own_failure(path, target))
        self.assertIn("stages meet only", includes.own_failure("tests/support/rlhf/loss/a.h",
                                                               "collimate/rlhf/reward/reward.h"))

    def test_stages_meet_in_types_only(self):
        fine, wrong = "collimate/rlhf/types/loss.h", "collimate/rlhf/reward/reward.h"
        self.assertEqual(includes.own_failure("collimate/rlhf/loss/sft.cpp", fine), "")
        self.assertIn("meet only in rlhf/types", includes.own_failure("collimate/rlhf/loss/sft.cpp", wrong))
        self.assertEqual(includes.own_failure("collimate/rlhf/modules/reward.cpp", wrong), "")
        self.assertIn("rlhf/loss may not include model/",
                      includes.own_failure("collimate/rlhf/loss/sft.cpp", "collimate/model/model.h"))

    def test_recipes_are_graphs(self):
        page, other = "collimate/recipe/grpo.cpp", "collimate/recipe/records.cpp"
        for target in ("collimate/recipe/page.h", "collimate/graph/trace.h", "collimate/batch/standard_keys.h"):
            self.assertEqual(includes.own_failure(page, target), "")
        for target in ("collimate/rlhf/loss/list.h", "collimate/flow/module.h"):
            self.assertIn("recipe's page is a graph", includes.own_failure(page, target))
        for target in ("collimate/train/learner.h", "collimate/train/optimizer.h", "collimate/generate/engine.h",
                       "collimate/rlhf/modules/trainer.h", "collimate/rlhf/loss/pairs.h", "collimate/model/model.h"):
            self.assertIn("a recipe is a graph", includes.own_failure(other, target))
        self.assertEqual(includes.own_failure(includes.REGISTRY, "collimate/rlhf/modules/trainer.h"), "")

    def test_recipes_call_nothing(self):
        for line in ("  train::Learner learner(model);", "  module->call(name, rows);", "  generate::Service service;",
                     "  module.train_step(name, rows, info);", "  service.submit(rows);",
                     "  reward->score(samples);", "  judge.score(samples);"):
            self.assertTrue(includes.RECIPE_CALL.search(line), line)
        for line in ("  trainer.train(advantages(scored));", "  if (call_.note) call_.note(line);",
                     "  generate::ServiceOptions options;", "  progress_.update(done, text);"):
            self.assertFalse(includes.RECIPE_CALL.search(line), line)

    def test_collimate_check_alone_asks_rewards(self):
        ask = "  spec.reward->score(samples);"
        self.assertEqual(includes.calls_in(includes.REWARD_CHECK, [ask]), [])
        self.assertEqual([f.line for f in includes.calls_in("collimate/recipe/prepare.cpp", ["", ask])], [2])
        for line in ("  judge.score(samples);", f"{ask} module->call(name, rows);"):
            self.assertEqual(len(includes.calls_in(includes.REWARD_CHECK, [line])), 1, line)

    def test_libraries(self):
        self.assertIn("may not include ATen/", includes.library_failure("collimate/graph/a.h", "ATen/core/Tensor.h"))
        self.assertEqual(includes.library_failure("collimate/tensor/a.h", "ATen/core/Tensor.h"), "")
        self.assertIn("18 s", includes.library_failure("collimate/tensor/a.cpp", "torch/torch.h"))
        self.assertIn("raw pointers", includes.library_failure("collimate/tensor/a_kernel.inc", "fmt/format.h"))

    def test_cycles(self):
        self.assertEqual(includes.find_cycle({"a": ["b"], "b": ["c"], "c": []}), [])
        self.assertEqual(includes.find_cycle({"a": ["b"], "b": ["c"], "c": ["b"]}), ["b", "c", "b"])


class Names(unittest.TestCase):
    """Two sources of a folder, each with text in a nameless namespace."""

    def found(self, one: str, other: str, paths=("collimate/a/one.cpp", "collimate/a/other.cpp")) -> list:
        wrapped = ("namespace collimate::a {{\nnamespace {{\n{}\n}}  // namespace\nint shared();\n"
                   "}}  // namespace collimate::a")
        texts = {path: tuple(wrapped.format(text).splitlines()) for path, text in zip(paths, (one, other))}
        return [failure.message.split()[0] for failure in names.equal_names(list(paths), texts.get)]

    def test_equal_ones_collide(self):
        for code, name in (("void f(int a) {", "f"), ("struct Part {", "Part"), ("constexpr int kMost = 3;", "kMost"),
                           ("std::map<int, int> table = {};", "table"), ("enum class Kind {", "Kind"),
                           ("template <typename T>\nclass Made {", "Made"), ("const char* kNames[] = {", "kNames"),
                           ("[[noreturn]] void fail(const std::string& a,\n    int b = 2) {", "fail")):
            self.assertEqual(self.found(code, code), [name], code)
        self.assertEqual(self.found("int f(int a) {", "struct f {"), ["f"])
        self.assertEqual(self.found("int f(int a) {", "int f(int b, bool c = true) {"), ["f"], "a call may mean either")
        self.assertEqual(self.found("using Json = nlohmann::json;", "using Json = nlohmann::ordered_json;"), ["Json"])

    def test_others_do_not(self):
        alias = "namespace fs = std::filesystem;"
        self.assertEqual(self.found(alias, alias), [])
        self.assertEqual(self.found("int f(int a) {", "int f(const Part& a) {"), [])
        self.assertEqual(self.found("int f(int a) {", "  return f(a);\n// int f(int a)\nusing std::f;"), [])
        for other in ("collimate/b/one.cpp", "collimate/a/one_test.cpp"):
            self.assertEqual(self.found("int f() {", "int f() {", ("collimate/a/one.cpp", other)), [])

    def test_namespaces_keep_names_apart(self):
        text = ("namespace a {", "namespace {", "int f() {", "}", "}  // namespace", "}  // namespace a")
        other = ("namespace b {", *text[1:5], "}  // namespace b")
        read = {"x/y/one.cpp": text, "x/y/other.cpp": other}.get
        self.assertEqual(names.equal_names(["x/y/one.cpp", "x/y/other.cpp"], read), [])

    def test_the_tree_is_read(self):
        found = names.local_names(tree.lines("collimate/recipe/run_directory.cpp"))
        self.assertIn("fs", [name for _, _, name, _ in found])


class Lint(unittest.TestCase):
    def broken(self, line: str, ending: str) -> bool:
        return any(ending in endings and lint.re.search(pattern, lint.code_of(line))
                   for endings, pattern, _ in lint.LINE_RULES)

    def test_lines(self):
        for line in ("  std::exit(1);", "using namespace std;", "  std::cerr << 1;", "int x;  "):
            self.assertTrue(self.broken(line, ".h"), line)
        for line in ("  on_exit(1);", "int exit_code();", 'log("exit(1)");', "// exit(1)", "using std::vector;"):
            self.assertFalse(self.broken(line, ".h"), line)

    def test_a_comment_begins_with_its_subject(self):
        for before, line, script in (("", "// What it reads.", False), ("", "  int y;\t// Of x.", False),
                                     ("#!/bin/sh", "# The same again.", True), ("", "\"\"\"What is read.", True),
                                     ("", "// Those of x.", False), ("", "// Its bytes.", False),
                                     ("#!/bin/sh", "# It may not.", True), ("", "\t// They are done.", False),
                                     ("", "\"\"\"Their sum.\"\"\"", True)):
            self.assertTrue(lint.nameless(before, line, script), line)
        for before, line, script in (("// It reads a row.", "// What a row has is read.", False),
                                     ("", "// Gives what it reads.", False), ("", 'f("// Of x");', False),
                                     ("", "// Often.", False), ("# One thing.", "# Of another.", True),
                                     ("", "// Items of it.", False), ("// One thing.", "// Its parts.", False)):
            self.assertFalse(lint.nameless(before, line, script), line)

    def test_a_name_like_an_option(self):
        with mock.patch.object(lint, "files", lambda *endings: ("--help/rows.jsonl",) if "" in endings else ()):
            self.assertIn("begins with a dash", lint.check_shape()[0].message)


class EveryKindOfSource(unittest.TestCase):
    """A wrong file is found by each check, whichever of C++'s endings it has."""
    NAME = "collimate/text/wrong"

    def failures(self, ending: str, check, **its_parts) -> list:
        """Gives what `check` says of one file; `its_parts` are the functions that read it."""
        path, module = self.NAME + ending, sys.modules[check.__module__]
        with contextlib.ExitStack() as stack:
            its_parts["files"] = lambda *endings: (path,) if path.endswith(endings) else ()
            for name, read in its_parts.items():
                stack.enter_context(mock.patch.object(module, name, read))
            return [failure.message for failure in check()]

    def test_of_every_ending(self):
        long = ("void f() {", *("  g();" for _ in range(50)), "}")
        for ending in (".cpp", ".cc", ".h", ".inc", ".cu"):
            with self.subTest(ending):
                self.assertEqual(len(self.failures(ending, lint.check_lines, lines=lambda _: ("  exit(1);",))), 1)
                self.assertIn("function of 52", self.failures(ending, lint.check_functions, lines=lambda _: long)[0])
                self.assertIn("500 lines", self.failures(ending, lint.check_shape, lines=lambda _: ("",) * 500)[0])
                included = self.failures(ending, includes.check_table, lines=lambda _: (),
                                         includes=lambda _: ((3, '"', "collimate/nowhere.h"),))
                self.assertIn("not a header of this project", included[0])
                formatted = self.failures(ending, compiler.check_format, run_all=lambda _, paths, *functions: [
                    tree.Failure(path, 1, "") for path in paths])
                self.assertIn("clang-format", formatted[0])

    def test_prints(self):
        for ending in (".cpp", ".cc", ".h"):
            self.assertTrue(self.failures(ending, lint.check_lines, lines=lambda _: ("  std::cout << 1;",)), ending)


class Documents(unittest.TestCase):
    def test_links(self):
        self.assertEqual(documents.link_failure("README.md", "CONTRIBUTING.md#the-short-way"), "")
        self.assertIn("no such heading", documents.link_failure("README.md", "CONTRIBUTING.md#nowhere"))
        self.assertIn("no such file", documents.link_failure("docs/glossary.md", "CONTRIBUTING.md"))
        self.assertIn("leaves the repository", documents.link_failure("README.md", "../"))

    def test_the_index_of_decisions(self):
        def said(*listed: str) -> list:
            return [failure.message for failure in documents.index_failures(listed, ["0001", "0003"])]

        good = ("1. [A](0001-a.md)", "2. (no page has this number)", "3. [B](0003-b.md), for a part of 1")
        self.assertEqual(said("# Decisions", *good), [])
        self.assertEqual(said(good[1], good[0], good[2]), ["entry 1 stands out of order, or links another page"])
        self.assertEqual(len(said(good[0], "2. [B](0003-b.md)")), 1)
        self.assertEqual(said(good[0]), ["page 0003 is missing in the list"])


class Compiler(unittest.TestCase):
    def test_messages_become_failures(self):
        output = f"{ROOT}/collimate/a.h:7:3: error: 'x' was not declared\nnote: more\n"
        self.assertEqual(compiler.parse(output, "b.h"), [tree.Failure("collimate/a.h", 7, "'x' was not declared")])
        self.assertEqual(compiler.parse("", "b.h"), [tree.Failure("b.h", 1, "failed without a message")])

    def tidied(self, changed: list, passed: set = frozenset(), closures: dict = None) -> tuple:
        """(the sources that clang-tidy is given, what is said of it) where so many files have changed, newest first."""
        sources = [f"collimate/a/s{i:03}.cpp" for i in range(200)]
        looked_at = []
        fakes = {"tidy_sources": lambda build: sources, "Passed": lambda name: passed, "tidy_key": lambda build, s: s,
                 "closure": (closures or {}).get, "check_tidy": lambda build, chosen: looked_at.extend(chosen) or []}
        with contextlib.ExitStack() as stack, contextlib.redirect_stderr(io.StringIO()) as said:
            for name, fake in fakes.items():
                stack.enter_context(mock.patch.object(compiler, name, fake))
            stack.enter_context(mock.patch.object(compiler.changes, "changed_files", lambda: ("abc", changed)))
            self.assertEqual(compiler.check_changed(pathlib.Path("build")), [])
        return looked_at, said.getvalue()

    def test_clang_tidy_takes_the_newest_within_its_budget(self):
        changed = [f"collimate/a/s{i:03}.cpp" for i in reversed(range(150))]
        looked_at, said = self.tidied(changed)
        self.assertEqual(looked_at, changed[:compiler.TIDY_BUDGET])
        self.assertIn("150 sources changed since abc; 0 of them passed before, the 96 that changed last", said)
        self.assertIn(f"54 left for the next run, as 96 is the limit of one: {' '.join(changed[96:104])} ...", said)
        looked_at, said = self.tidied(changed, passed=set(changed[:96]))  # the next run takes what was left
        self.assertEqual((looked_at, "left" in said), (changed[96:], False))

    def test_clang_tidy_reads_a_header_where_it_is_included(self):
        closures = {f"collimate/a/s{i:03}.cpp": ["collimate/b/x.h"] if i in (7, 9) else [] for i in range(200)}
        changed = ["collimate/a/s003.h", "collimate/b/x.h", "collimate/a/s003.cpp", "README.md", "tests/alone.h"]
        self.assertEqual(self.tidied(changed, closures=closures)[0], ["collimate/a/s003.cpp", "collimate/a/s007.cpp"])

    def test_headers_that_the_build_shows(self):
        with tempfile.TemporaryDirectory() as scratch:
            build = pathlib.Path(scratch)
            compiled = ["collimate/base/error.cpp", "collimate/cli/main.cpp"]
            (build / "compile_commands.json").write_text(json.dumps(
                [{"file": str(ROOT / source), "command": f"g++ -c {ROOT / source}"} for source in compiled]))
            self.assertTrue(compiler.shown_by_the_build(build, "collimate/base/error.h"))  # its source begins with it
            self.assertFalse(compiler.shown_by_the_build(build, "collimate/base/log.h"))  # its source is not compiled
            self.assertFalse(compiler.shown_by_the_build(build, "collimate/cli/main.h"))  # main.cpp has no such header


class Changed(unittest.TestCase):
    """clang-tidy on what changed: which sources it looks at."""
    SOURCES = {"a/x.cpp": {"a/x.h", "a/alone.h"}, "b/y.cpp": {"b/y.h", "a/alone.h", "b/rows.inc"}}

    def looked_at(self, paths: list, passed=(), budget: int = 24) -> list:
        with mock.patch.multiple(compiler, TIDY_BUDGET=budget, tidy_sources=lambda _: list(self.SOURCES),
                                 Passed=lambda _: passed, tidy_key=lambda _, source: source,
                                 closure=lambda source: {source, *self.SOURCES[source]},
                                 check_tidy=lambda _, sources: sources), \
                mock.patch.object(compiler.changes, "changed_files", lambda: ("abc", paths)), \
                contextlib.redirect_stderr(io.StringIO()):
            return compiler.check_changed(pathlib.Path())

    def test_what_passed_takes_no_place_in_the_budget(self):
        self.assertEqual(self.looked_at(["a/x.cpp", "b/y.cpp"], budget=1), ["a/x.cpp"])
        self.assertEqual(self.looked_at(["a/x.cpp", "b/y.cpp"], passed=["a/x.cpp"], budget=1), ["b/y.cpp"])

    def test_a_header_is_seen_in_a_source(self):
        self.assertEqual(self.looked_at(["b/y.h", "b/y.cpp"]), ["b/y.cpp"])
        self.assertEqual(self.looked_at(["a/alone.h"]), ["a/x.cpp"])  # that of its own folder
        self.assertEqual(self.looked_at(["b/rows.inc"]), ["b/y.cpp"])
        self.assertEqual(self.looked_at(["tests/support/z.h", "b/y_test.cpp", "README.md"]), [])

    def test_sources_that_are_compiled_at_once_are_read_at_once(self):
        targets = {**{f"a/{i}.cpp": "a" for i in range(9)}, "b/alone.cpp": "b/alone.cpp"}
        with tempfile.TemporaryDirectory() as scratch, mock.patch.object(compiler, "companies", lambda _: targets):
            made = compiler.batches(pathlib.Path(), list(reversed(targets)), pathlib.Path(scratch))
            first = pathlib.Path(next(iter(made))).read_text()
        self.assertEqual(list(made.values()), [[f"a/{i}.cpp" for i in range(8)], ["a/8.cpp"], ["b/alone.cpp"]])
        self.assertEqual(first, "".join(f'#include "{compiler.ROOT}/a/{i}.cpp"\n' for i in range(8)))


class CountLines(unittest.TestCase):
    def test_what_serves_tests_alone_is_of_the_tests(self):
        includes_of = {"a/x.cpp": ["a/x.h", "a/shared.h"],
                       "a/x_test.cpp": ["a/x.h", "a/toy.h", "a/shared.h", "a/toy.inc"]}
        paths = [*includes_of, "a/x.h", "a/toy.h", "a/toy.inc", "a/shared.h", "a/unread.h", "tests/golden/main.cpp"]
        tests = count_lines.test_files(paths, lambda path: includes_of.get(path, []))
        self.assertEqual(tests, {"a/x_test.cpp", "a/toy.h", "a/toy.inc", "tests/golden/main.cpp"})

    def test_folders(self):
        self.assertEqual(count_lines.folder_of("collimate/plan/cost/job.cpp"), "collimate/plan")
        self.assertEqual(count_lines.folder_of("bench/peers/compare.py"), "bench")


class Mutations(unittest.TestCase):
    def test_every_edit_still_matches_its_source_once(self):
        edits = mutate.edits([])
        self.assertGreaterEqual(len(edits), 60)
        self.assertEqual([f"{edit.file}: {edit.text}: {problem}" for edit in edits if (problem := edit.problem())], [])
        self.assertEqual([edit for edit in edits if edit.text == edit.replacement], [])

    def test_the_table_for_contributors_counts_them(self):
        page = mutate.PAGE.read_text()
        self.assertEqual([table[0] for table in mutate.PAGE_TABLE.finditer(page)], [mutate.page_table()],
                         "the table in CONTRIBUTING.md is old; try: tools/mutate.py --table")

    def test_every_folder_has_edits_or_a_reason_why_not(self):
        folders = {edit.folder for edit in mutate.edits([])} | set(mutate.WITHOUT_EDITS)
        ours = {f"collimate/{path.name}" for path in (ROOT / "collimate").iterdir() if path.is_dir()}
        self.assertEqual(ours - folders, set())

    def test_a_file_of_python_tests_is_run(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            for name in ("tools", "tests/e2e"):
                (root / name).mkdir(parents=True)
            (root / "tools/run_unittest.py").write_text((ROOT / "tools/run_unittest.py").read_text())
            (root / "tests/e2e/x_test.py").write_text(
                "import os, unittest\nclass Case(unittest.TestCase):\n"
                "    def test_a(self):\n        self.assertEqual(open('x.py').read(), 'a = 1\\n')\n"
                "        self.assertIn('COLLIMATE_BIN_DIR', os.environ)\n"
                "    def test_b(self): self.fail()\n")
            (root / "x.py").write_text("a = 1\n")
            with mock.patch.object(mutate, "ROOT", root), mock.patch.object(mutate, "build", lambda *_: ""), \
                    mock.patch.object(mutate, "is_dirty", lambda _: False):
                said = {tests: mutate.try_edit(root, mutate.Edit("x.py", "a = 1", "a = 2", "x_test.py", tests))
                        for tests in ("Case.test_a", "Case.test_*", "Other.*")}
        self.assertEqual(said["Case.test_a"], "noticed")
        self.assertIn("says: failed", said["Case.test_*"])
        self.assertIn("says: none", said["Other.*"])

    def test_a_line_that_is_no_edit_is_refused(self):
        with self.assertRaisesRegex(ValueError, "expected file | text"):
            mutate.parse("collimate/base/philox.cpp | text | replacement")

    def tried(self, script: str, replacement: str = "int b;") -> tuple:
        """Gives what try_edit says of a program, a shell script that sees the source, and what the file then holds."""
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            (root / "bin").mkdir()
            (root / "x.cpp").write_text("int a;\n")
            program = root / "bin" / "x_test"
            program.write_text("#!/bin/sh\nREPORT=${2#*:}\n" + script)
            program.chmod(0o755)
            with mock.patch.object(mutate, "ROOT", root), mock.patch.object(mutate, "build", lambda *_: ""), \
                    mock.patch.object(mutate, "is_dirty", lambda _: False):
                said = mutate.try_edit(root, mutate.Edit("x.cpp", "int a;", replacement, "x_test", "X.*"))
            return said, (root / "x.cpp").read_text()

    def test_what_is_noticed(self):
        report = "echo '<testsuites><testcase/></testsuites>' > $REPORT\n"
        self.assertEqual(self.tried(report + "grep -q a x.cpp"), ("noticed", "int a;\n"))
        self.assertEqual(self.tried(report), ("SURVIVED", "int a;\n"))
        self.assertIn("says: failed", self.tried(report + "exit 1")[0])
        self.assertIn("says: none", self.tried("exit 0")[0])

    def test_the_source_comes_back(self):
        edit = mutate.Edit("x.cpp", "int a;", "int b;", "x_test", "*")
        with tempfile.TemporaryDirectory() as scratch, mock.patch.object(mutate, "ROOT", pathlib.Path(scratch)):
            path = pathlib.Path(scratch) / "x.cpp"
            path.write_text("int a;\n")
            with self.assertRaises(KeyboardInterrupt), mutate.applied(edit):
                self.assertEqual(path.read_text(), "int b;\n")
                raise KeyboardInterrupt
            self.assertEqual(path.read_text(), "int a;\n")
            path.write_text("int a; int a;\n")
            self.assertEqual(edit.problem(), "its text stands there 2 times")


class Verbs(unittest.TestCase):
    def test_unknown_verb(self):
        done = subprocess.run([ROOT / "tools" / "make.sh", "nonsense"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected one of quickstart test", done.stderr)


if __name__ == "__main__":
    unittest.main()
