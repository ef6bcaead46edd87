#!/usr/bin/env python3
"""Says how much `pip install -r tools/requirements.txt` downloads, by the sizes that the package index states.

  tools/download_size.py [--index URL]

Nothing is downloaded but the index's pages of these packages (PEP 691 and 700). Of each package the wheel counts that
pip would take for this interpreter and machine. The table has megabytes of 10^6 bytes, as pip prints them.
"""
import argparse
import json
import pathlib
import sys
import urllib.request

from pip._vendor.packaging.tags import sys_tags
from pip._vendor.packaging.utils import parse_wheel_filename

REQUIREMENTS = pathlib.Path(__file__).resolve().parent / "requirements.txt"


def pinned(text: str) -> list:
    """(name, version) of each line."""
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return [tuple(line.split("==")) for line in lines if line]


def chosen(files: list, version: str) -> dict:
    """The wheel of this version, of a package's files, that pip prefers here."""
    order = {tag: place for place, tag in enumerate(sys_tags())}
    fitting = []
    for file in files:
        if not file["filename"].endswith(".whl") or file.get("yanked"):
            continue
        _, of, _, tags = parse_wheel_filename(file["filename"])
        places = [order[tag] for tag in tags if tag in order]
        if str(of).split("+")[0] == version and places:
            fitting.append((min(places), file["filename"], file))
    if not fitting:
        raise SystemExit(f"[download_size] expected a wheel of version {version} for this machine, got none among "
                         f"{len(files)} files")
    return min(fitting, key=lambda entry: entry[:2])[2]


def files_of(index: str, name: str) -> list:
    request = urllib.request.Request(f"{index.rstrip('/')}/{name}/",
                                     headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["files"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index", default="https://pypi.org/simple")
    parser.add_argument("--requirements", default=REQUIREMENTS, type=pathlib.Path)
    given = parser.parse_args()
    total = 0
    for name, version in pinned(given.requirements.read_text()):
        file = chosen(files_of(given.index, name), version)
        total += file["size"]
        print(f"{file['size'] / 1e6:8.1f} MB  {file['filename']}")
    print(f"{total / 1e6:8.1f} MB  in all")


if __name__ == "__main__":
    sys.exit(main())
