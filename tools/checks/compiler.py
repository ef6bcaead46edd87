"""These checks need a compiler or formatter: headers alone, clang-format, clang-tidy. Results are kept by content."""
import collections
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from checks import changes
from checks.includes import module_of
from checks.tree import CODE, ROOT, Failure, Passed, closure, digest, files, text

MESSAGE = re.compile(r"^(?P<path>[^:\s]+):(?P<line>\d+):\d+: (?P<kind>fatal error|error|warning): (?P<text>.*)$")
WORKERS = min(os.cpu_count() or 1, 4)


@functools.cache
def commands(build: pathlib.Path) -> dict:
    """relative source -> its compiler arguments, without launcher, -c, -o and the file itself."""
    table = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        first = next(i for i, w in enumerate(words) if w.endswith(("g++", "c++", "clang++")))
        kept, skip = [], False
        for word in words[first + 1:]:
            if not skip and word not in ("-c", entry["file"]) and word != "-o":
                kept.append(word)
            skip = word == "-o"
        for source in sources_of(pathlib.Path(entry["file"])):
            table[os.path.relpath(source, ROOT)] = tuple(kept)
    return table


def sources_of(compiled: pathlib.Path) -> list:
    """The file itself, or the sources that it includes where CMake made it to compile them at once."""
    return re.findall(r'^#include "(.+)"$', compiled.read_text(), re.MULTILINE) \
        if compiled.parent.name == "Unity" else [compiled]


@functools.cache
def companies(build: pathlib.Path) -> dict:
    """relative source -> the target whose other sources the build compiles with it at once; itself where none."""
    entries = [pathlib.Path(entry["file"]) for entry in json.loads((build / "compile_commands.json").read_text())]
    return {os.path.relpath(source, ROOT): str(entry.parent if entry.parent.name == "Unity" else source)
            for entry in entries for source in sources_of(entry)}


def flags_for(build: pathlib.Path, path: str) -> tuple:
    """A header is compiled like a library source of its folder; one that no target compiles, like any source."""
    known = commands(build)
    plain = [s for s in known if not re.search(r"_(test|avx2|avx512|avx512bf16|amx|avx2tiles)\.cpp$", s)]
    same = [s for s in plain if module_of(path) and module_of(s) == module_of(path)]
    chosen = (same or [s for s in plain if "/recipe/" in s] or plain or sorted(known))[0]
    return known[path] if path in known else known[chosen]


def key_flags(build: pathlib.Path, path: str) -> tuple:
    """Gives a source's flags with the same words whichever the build directory is."""
    return tuple(word.replace(str(build), "").replace(str(ROOT), "") for word in flags_for(build, path))


def parse(output: str, fallback: str) -> list:
    failures = []
    for line in output.splitlines():
        match = MESSAGE.match(line)
        if match:
            where = os.path.relpath(ROOT / match["path"], ROOT)
            failures.append(Failure(where, int(match["line"]), match["text"]))
    return failures or [Failure(fallback, 1, output.strip()[-300:] or "failed without a message")]


def run_all(name: str, paths: list, keys_of, command_of) -> list:
    """Runs command_of(path) for each path of whose keys one did not pass before."""
    passed = Passed(name)

    def one(path: str) -> list:
        keys = keys_of(path)
        if all(key in passed for key in keys):
            return []
        done = subprocess.run(command_of(path), cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode == 0:
            for key in keys:
                passed.add(key)
            return []
        return parse(done.stdout + done.stderr, path)

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        failures = [f for found in pool.map(one, paths) for f in found]
    passed.save()
    return sorted(set(failures))


def shown_by_the_build(build: pathlib.Path, header: str) -> bool:
    """Whether a source that the build compiles begins with this header."""
    source = header.removesuffix(".h") + ".cpp"
    if source not in commands(build):
        return False
    first = re.search(r"^#include\s+(\S+)", text(source), re.MULTILINE)
    return first is not None and first[1] == f'"{header}"'


def check_headers(build: pathlib.Path) -> list:
    """Every header compiles alone: compiled here where the build does not show it."""
    headers = [p for p in files(".h") if not p.endswith("_cuda.h") and not shown_by_the_build(build, p)]
    of_tests = [f'-DCOLLIMATE_{name}="{ROOT}"' for name in ("SOURCE_DIR", "BIN_DIR")]
    return run_all("headers", headers, lambda p: [digest(p, *key_flags(build, p))],
                   lambda p: ["g++", *flags_for(build, p), *of_tests, "-fsyntax-only", "-include", p, "-x", "c++",
                              "/dev/null"])


def check_format() -> list:
    style = text(".clang-format")
    found = run_all("format", list(files(*CODE)),
                    lambda p: [hashlib.sha256((style + text(p)).encode()).hexdigest()],
                    lambda p: ["clang-format", "--dry-run", "-Werror", p])
    first = {failure.path: failure.line for failure in reversed(found)}
    return [Failure(path, line, "not as clang-format writes it; run clang-format -i") for path, line in first.items()]


def tidy_sources(build: pathlib.Path) -> list:
    left_out = ("_amx.cpp", "_avx2tiles.cpp", "_test.cpp")
    return [p for p in files(".cpp") if p in commands(build) and not p.endswith(left_out)]


def tidy_key(build: pathlib.Path, path: str) -> str:
    return digest(path, text(".clang-tidy"), *key_flags(build, path))


TIDY_BATCH = 8  # sources at once, as most of clang-tidy's time is their headers'
TIDY_BUDGET = 96  # sources a run: two minutes on two cores


def batches(build: pathlib.Path, sources: list, folder: pathlib.Path) -> dict:
    """Files that it writes in `folder` -> the sources that each includes: some that the build may compile at once."""
    by_target, made = collections.defaultdict(list), {}
    for source in sorted(sources):
        by_target[companies(build)[source]].append(source)
    for together in by_target.values():
        for begin in range(0, len(together), TIDY_BATCH):
            file = folder / f"batch_{len(made)}.cpp"
            made[str(file)] = together[begin:begin + TIDY_BATCH]
            file.write_text("".join(f'#include "{ROOT / source}"\n' for source in made[str(file)]))
    return made


def check_tidy(build: pathlib.Path, sources: list = None) -> list:
    """Checks all sources, or these, but for those that passed before."""
    passed = Passed("tidy")
    todo = [s for s in (tidy_sources(build) if sources is None else sources) if tidy_key(build, s) not in passed]
    with tempfile.TemporaryDirectory(prefix="collimate-tidy-") as scratch:
        made = batches(build, todo, pathlib.Path(scratch))
        return run_all("tidy", list(made), lambda file: [tidy_key(build, source) for source in made[file]],
                       lambda file: ["clang-tidy", "--quiet", f"--config-file={ROOT}/.clang-tidy",
                                     f"--header-filter=^{ROOT}/", file, "--", *clang_flags(build, made[file][0])])


def clang_flags(build: pathlib.Path, path: str) -> list:
    return [flag for flag in flags_for(build, path) if flag != "-Wshadow=local"]  # GCC's alone


def reader_of(path: str, sources: list) -> str:
    """The source in which clang-tidy sees this file: itself; of a header the one of its name, else the first that
    includes it, out of its own folder if one does. "" when there is none."""
    folder, named = os.path.dirname(path), os.path.splitext(path)[0] + ".cpp"
    if named in sources:
        return named
    return min((s for s in sources if path in closure(s)), key=lambda s: (os.path.dirname(s) != folder, s), default="")


def check_changed(build: pathlib.Path) -> list:
    """clang-tidy on what changed since changes.base() and did not pass as it is, newest first, within the budget; says
    what it leaves out for the next run."""
    since, paths = changes.changed_files()
    sources, passed = tidy_sources(build), Passed("tidy")
    changed = dict.fromkeys(reader_of(p, sources) for p in paths if p.endswith(CODE))
    changed.pop("", None)  # what only tests include
    todo = [source for source in changed if tidy_key(build, source) not in passed]
    newest, left = todo[:TIDY_BUDGET], todo[TIDY_BUDGET:]
    print(f"tidy: {len(changed)} sources changed since {since}; {len(changed) - len(todo)} of them passed before, the "
          f"{len(newest)} that changed last of the others are looked at", file=sys.stderr)
    if left:
        print(f"tidy: {len(left)} left for the next run, as {TIDY_BUDGET} is the limit of one: {' '.join(left[:8])}"
              f"{' ...' if len(left) > 8 else ''}", file=sys.stderr)
    return check_tidy(build, newest)
