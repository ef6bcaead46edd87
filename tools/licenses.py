#!/usr/bin/env python3
"""Puts the licences of the libraries in PREFIX/lib/collimate, and of the headers that are compiled in, into
PREFIX/share/doc/collimate/LICENSES, with a list of what has which: licenses.py PREFIX

A library's origin is found by its file name: a distribution of this interpreter's that lists it, else a Debian package.
Exit code 1, naming it, when one has no licence."""
import importlib.metadata
import pathlib
import re
import shutil
import subprocess
import sys

HEADERS = ("nlohmann-json3-dev", "libcli11-dev")  # Debian packages whose code is in the program itself
LICENSE_FILE = re.compile(r"(^|/)(LICEN[CS]E|NOTICE|COPYING)[^/]*$", re.IGNORECASE)


def distributions() -> dict:
    """file name of a shared library, and the name that cmake/llguidance.cmake gives it -> its distribution."""
    return {name: distribution for distribution in importlib.metadata.distributions()
            for file in distribution.files or () if ".so" in file.name
            for name in (file.name, f"lib{distribution.metadata['Name']}.so")}


def debian_package(library: str) -> str:
    done = subprocess.run(["dpkg-query", "-S", f"*/{library}"], capture_output=True, text=True)
    return done.stdout.split(":")[0] if done.returncode == 0 else ""


def licence_files(library: str, wheels: dict) -> tuple:
    """(what it comes from, its licence files); no files where there are none."""
    if distribution := wheels.get(library):
        files = [distribution.locate_file(f) for f in distribution.files if LICENSE_FILE.search(str(f))]
        own = [f for f in files if ".dist-info" in str(f)]
        return f"{distribution.metadata['Name']} {distribution.version}", [pathlib.Path(f) for f in own or files]
    package = debian_package(library)
    return package, debian_licence(package)


def debian_licence(package: str) -> list:
    """Gives the package's copyright file and the common licences that this refers to."""
    file = pathlib.Path("/usr/share/doc", package, "copyright")
    if not package or not file.is_file():
        return []
    named = set(re.findall(r"/usr/share/common-licenses/[\w.+-]*[\w+]", file.read_text(errors="replace")))
    return [file, *(path for path in map(pathlib.Path, sorted(named)) if path.is_file())]


def main() -> int:
    prefix = pathlib.Path(sys.argv[1])
    target = prefix / "share/doc/collimate/LICENSES"
    target.mkdir(parents=True, exist_ok=True)
    wheels = distributions()
    rows = [(f"headers of {package}", package, debian_licence(package)) for package in HEADERS]
    for library in sorted((prefix / "lib/collimate").glob("lib*.so*")):
        if not library.is_symlink():
            rows.append((library.name, *licence_files(library.name, wheels)))
    lines = []
    for name, origin, files in rows:
        if not files:
            origin = origin or "any known package"
            print(f"[licenses] expected a licence of {name}, got none in {origin}", file=sys.stderr)
            return 1
        copies = [f"{origin.replace(' ', '-')}-{file.name}" for file in files]
        for file, copy in zip(files, copies):
            shutil.copyfile(file, target / copy)
        lines.append(f"{name}: {origin}: {', '.join(copies)}\n")
    (target / "README").write_text("Library: where it comes from: its licence in this directory.\n\n" + "".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
