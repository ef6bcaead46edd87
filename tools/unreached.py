#!/usr/bin/env python3
"""Lists functions and types of the libraries that no program reaches: tools/unreached.py [BUILD] [--all]

Programs are `collimate`, `collimate-goldens`, the Python module and examples/; benchmarks and tests reach nothing here,
and a line says where a benchmark does. Two looks, as each sees what the other cannot:
  symbols  the compiled objects of BUILD (build/release; make its `all` and `benches` first): functions that no chain of
           calls, tables and virtual functions leads to from a program's main or a static initialiser. A function whose
           every call was inlined looks unreached, so one is listed only when its name stands in no more places of
           production than declare and define it (--all: each of them).
  names    what a header declares and no other line of production says: inline functions, types, members, constants;
           functions that none calls or hands on by name, whatever else has that name; headers of collimate/ that
           tests alone include, which belong below tests/; and those that tests and their own source alone include.
           `make check` looks so far.
What is there all the same stands in EXCEPTIONS with its reason. Exit code 1 where something is listed.
"""
import argparse
import bisect
import collections
import concurrent.futures
import functools
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from checks.lint import code_of  # noqa: E402
from checks.tree import CODE, ROOT, Failure, files, lines  # noqa: E402
from count_lines import test_files  # noqa: E402

SECTION = re.compile(r"^Disassembly of section (\S+):|^RELOCATION RECORDS FOR \[(\S+)\]:")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
CALL = re.compile(r"\s(?:call|jmp|j\w+|lea)\s.*<([^>+]+)(?:\+0x[0-9a-f]+)?>$")
RELOCATION = re.compile(r"\s(R_X86_64_\w+)\s+(\S+?)(?:([+-])0x([0-9a-f]+))?$")
SYMBOL = re.compile(r"^([0-9a-f]+) (.{7}) (\S+)\t([0-9a-f]+) (?:\.hidden |\.protected )?(\S+)$")
PROGRAMS = re.compile(
    r"CMakeFiles/(collimate|collimate-goldens|collimate_native|own_parts|own_flow|own_flow_plugin)\.dir/")
BENCHES = re.compile(r"CMakeFiles/bench_\w+\.dir/")
SKIPPED = (".eh_frame", ".gcc_except_table", ".debug", ".note", ".comment")

# Why it is there: of names, of symbols' last words, and of whole headers. One that holds for nothing is listed too.
ASKED_BY_LIBRARY = "the standard library asks for it"
BOOKS = "the device of tests that checks accesses keeps the allocator's books by it"
TILES = "a processor reads it where it loads the shapes of its tiles"
EXCEPTIONS = {
    "is_steady": ASKED_BY_LIBRARY,
    "is_transparent": ASKED_BY_LIBRARY,
    "loss_names": "coverage_test.cpp asks by it which losses the goldens have",
    "train_unsupervised": "programs with DeepSpeed-Chat's loop call it, as its trainer's",
    "count_block": BOOKS,
    "uncount_block": BOOKS,
    "set_instruction_set": "tests compare instruction sets within one process; COLLIMATE_ISA is read once",
    "memory_used": "tests of budgets and moved rows read the allocator's books",
    "memory_cached": "tests of what the allocator keeps have no other sign of it",
    "trim_memory": "a test of what the allocator keeps begins with nothing kept",
    "add_tensors_of": "tests join by it what the ranks of a layout have saved in memory",
    "add_pinned": "a program that links the libraries gives a run modules of its own in process",
    "palette": TILES,
    "start_row": TILES,
    "collimate/report/comparison.h": "tests look at parts of the page of several runs by themselves",
    "collimate/rlhf/advantage/gae.h": "goldens compute single rows by it",
    "collimate/text/constraint/llguidance.h": "its structures are those of another library's interface, whole",
}


def run(*command: str) -> list:
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout.splitlines()


class Object:
    """One object file: the symbols it defines and what each of them refers to, as names or (object, local name)."""

    def __init__(self, path: pathlib.Path):
        self.path = str(path)
        self.symbols = collections.defaultdict(list)  # section -> sorted (offset, node)
        self.functions = set()
        self.references = collections.defaultdict(set)
        self.local = set()
        for match in filter(None, map(SYMBOL.match, run("objdump", "-t", self.path))):
            offset, flags, section, _, name = match.groups()
            if section in ("*UND*", "*ABS*") or name.startswith((".L", ".")):
                continue
            if flags[0] == "l":
                self.local.add(name)
            self.symbols[section].append((int(offset, 16), self.node(name)))
            if "F" in flags and flags[0] != "l":
                self.functions.add(name)
        for table in self.symbols.values():
            table.sort(key=lambda entry: entry[0])
        self.read()

    def node(self, name: str):
        return (self.path, name) if name in self.local else name

    def at(self, section: str, offset: int):
        """The symbol at that place; a nameless place is its section."""
        table = self.symbols[section]
        before = bisect.bisect_right(table, offset, key=lambda entry: entry[0])
        return table[before - 1][1] if before else (self.path, section)

    def target(self, name: str, addend: int):
        return self.at(name, addend) if name.startswith(".") else self.node(name)

    def read(self) -> None:
        """Code with its relocations, then the relocations of data."""
        current, called = None, None
        for line in run("objdump", "-dr", "--no-show-raw-insn", self.path):
            found = self.reference(line, 4)
            # A call with a relocation is shown as one of what lies behind it: the relocation's line says of what it is.
            if found is None and called is not None:
                self.references[current].add(called)
            called = None
            if match := FUNCTION.match(line):
                current = self.node(match[1])
            elif current is not None and found:
                self.references[current].add(found)
            elif current is not None and (match := CALL.search(line)):
                called = self.node(match[1])
        section = ""
        for line in run("objdump", "-r", self.path):
            if match := SECTION.match(line):
                section = match[2] or ""
            elif section.startswith(SKIPPED) or section.startswith(".text") or not line[:1].isalnum():
                continue
            elif found := self.reference(line, 0):
                self.references[self.at(section, int(line.split()[0], 16))].add(found)
                if section.startswith((".init_array", ".ctors")):
                    self.references[(self.path, "initialisers")].add(found)

    def reference(self, line: str, bias: int):
        match = RELOCATION.search(line)
        if not match:
            return None
        kind, name, sign, addend = match.groups()
        value = int(addend or "0", 16) * (-1 if sign == "-" else 1)
        return self.target(name, value + (bias if "PC32" in kind or "PLT32" in kind else 0))


def reachable(roots: set, references: dict) -> set:
    seen, todo = set(roots), list(roots)
    while todo:
        for found in references.get(todo.pop(), ()):
            if found not in seen:
                seen.add(found)
                todo.append(found)
    return seen


def graph_of(objects: list) -> dict:
    references = collections.defaultdict(set)
    for item in objects:
        for node, found in item.references.items():
            references[node] |= found
    return references


def load(build: pathlib.Path) -> list:
    tests = re.compile(r"CMakeFiles/(\w+_test|\w+_support|collimate_(?:test|checked_device)_\w+)\.dir/")
    built = re.findall(r"^build (\S+\.o):", (build / "build.ninja").read_text(), re.M)  # older ones may lie there still
    paths = [build / name for name in built if not tests.search(name)]
    with concurrent.futures.ProcessPoolExecutor() as pool:
        return list(pool.map(Object, paths, chunksize=8))


def unreached_symbols(objects: list) -> list:
    """(mangled name, whether a benchmark reaches it) of functions of our own."""
    references = graph_of(objects)
    programs = [o for o in objects if PROGRAMS.search(o.path)]
    libraries = [o for o in objects if not PROGRAMS.search(o.path) and not BENCHES.search(o.path)]
    initialisers = {(o.path, "initialisers") for o in objects}
    mains = {"main", "PyInit__native"}
    of_programs = reachable(mains | initialisers, graph_of(programs + libraries))
    of_benches = reachable(mains | initialisers, references)
    functions = {name for o in libraries for name in o.functions} - of_programs
    return sorted((name, name in of_benches) for name in functions)


@functools.cache
def production() -> list:
    """The lines of production and examples, comments and texts apart."""
    paths = files(*CODE)
    tests = {p for p in test_files(list(paths)) if not p.startswith("tests/golden/") or p.endswith("_test.cpp")}
    return [code_of(line) for path in paths if path not in tests and not path.startswith("bench/")
            for line in lines(path)]


@functools.cache
def words() -> collections.Counter:
    """How often each word stands in production."""
    return collections.Counter(word for line in production() for word in re.findall(r"\w+", line))


@functools.cache
def called() -> collections.Counter:
    """How often each word stands in production as a function: before its arguments, or alone as a value."""
    return collections.Counter(word for line in production() for pattern in (CALLED, HANDED_ON)
                               for word in pattern.findall(line))


@functools.cache
def types() -> set:
    return {match["type"] for match in map(DECLARED.match, production()) if match and match["type"]}


def said_of(names: list) -> list:
    """(demangled, last name, whether a benchmark reaches it), ours only, one line a function."""
    plain = subprocess.run(["c++filt"], input="\n".join(name for name, _ in names), capture_output=True, text=True,
                           check=True).stdout.splitlines()
    found = []
    for (_, bench), full in zip(names, plain):
        head = re.sub(r"\(anonymous namespace\)|\[abi:\w+\]", "", full).split("(")[0]
        match = re.search(r"([~\w]+)$", re.sub(r"<.*>", "", head))
        if head.startswith("collimate::") and match and not match[1].startswith("~") and "<" not in head:
            parts = head.split("::")
            if len(parts) < 2 or parts[-1] != parts[-2]:
                found.append((full, match[1], bench))
    return found


DECLARED = re.compile(r"^(?:  )?(?:inline |constexpr |static |virtual |explicit |\[\[nodiscard\]\] )*"
                      r"(?:(?:class|struct|enum class|using)\s+(?P<type>\w+)|"
                      r"[\w:<>,&* ]+?[\s&*](?P<name>\w+)\s*(?:\(|=|;|\{))")


CALLED = re.compile(r"(\w+)\s*(?:<[^<>]*>)?\(")
HANDED_ON = re.compile(r"(?:[(,=?:&{]|\breturn)\s*(\w+)(?=\s*[,);}:])")
SIGNATURE = re.compile(r"^(?:  )?[\w:<>,&* \[\]]+?[\s&*](?P<name>\w\w+)\(.*\)[^()]*[{;]")


def never_called(line: str) -> str:
    """The function that it declares or defines and nothing calls, or '': no constructor, macro or overridden one."""
    match = SIGNATURE.match(line)
    if not match or match["name"] in types() or " override" in line or re.match(r"\s*(return|COLLIMATE_)", line):
        return ""
    return match["name"] if called()[match["name"]] <= (1 if "{" in line else 2) else ""


def unsaid_names() -> list:
    """Gives what a header of production declares and nothing of production says again."""
    paths = files(*CODE)
    tests, count, found = test_files(list(paths)), words(), []
    for path in paths:
        if path in tests or not path.startswith("collimate/") or not path.endswith((".h", ".inc")):
            continue
        for number, line in enumerate(lines(path), 1):
            match = DECLARED.match(code_of(line))
            name = match and (match["type"] or match["name"])
            if name and count[name] == 1 and not name.startswith("_") and " override" not in line:
                found.append(Failure(path, number, f"{name}: nothing but this declaration says it"))
            elif path.endswith(".h") and (name := never_called(code_of(line))):
                found.append(Failure(path, number, f"{name}: nothing calls it"))
    return found


def headers_of_tests() -> list:
    return [Failure(path, 1, "tests alone include it: it belongs below tests/support/")
            for path in sorted(test_files(list(files(*CODE))))
            if path.startswith("collimate/") and path.endswith((".h", ".inc", ".cuh"))]


INCLUDE = re.compile(r'#include "([^"]+)"')


def headers_of_one_source() -> list:
    """Gives headers whose declarations no other source can reach."""
    paths = files(*CODE)
    tests, includers = test_files(list(paths)), collections.defaultdict(set)
    for path in (path for path in paths if path not in tests):
        for match in filter(None, map(INCLUDE.match, lines(path))):
            includers[match[1]].add(path.rpartition(".")[0])
    return [Failure(path, 1, "tests and its own source alone include it") for path in paths
            if path.startswith("collimate/") and path.endswith(".h") and path not in tests
            and includers[path] == {path.removesuffix(".h")}]


def excepted(failure: Failure) -> str:
    """The exception that the failure falls under, or ''."""
    return next((key for key in (failure.path, failure.message.split(":")[0]) if key in EXCEPTIONS), "")


def check_names() -> list:
    """Gives what the second look finds, for `make check`."""
    found = unsaid_names() + headers_of_tests() + headers_of_one_source()
    return [failure for failure in found if not excepted(failure)]


def listed(build: pathlib.Path, everything: bool = False) -> list:
    """Gives what both looks find, a line each, and exceptions that hold for nothing."""
    found = [f"name    {failure}" for failure in check_names()]
    held = {excepted(failure) for failure in unsaid_names() + headers_of_one_source()}
    for full, name, bench in said_of(unreached_symbols(load(build))):
        held.add(name)
        if everything or (words()[name] <= 2 and name not in EXCEPTIONS and not bench):
            found.append(f"symbol  {full}{' (a benchmark reaches it)' if bench else ''}")
    found += [f"exception  {name}: it holds for nothing" for name in EXCEPTIONS if name not in held]
    return found


def check_all(build: pathlib.Path) -> list:
    return [Failure("tools/unreached.py", 1, line) for line in listed(build)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, nargs="?", default=ROOT / "build" / "release")
    parser.add_argument("--all", action="store_true", help="also functions whose names production says elsewhere")
    options = parser.parse_args()
    found = listed(options.build, options.all)
    print("\n".join([*found, f"{len(found)} unreached, {len(EXCEPTIONS)} exceptions"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
