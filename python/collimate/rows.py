"""Rows in memory, as files that a run reads: lines of JSON."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Union

from collimate.errors import InputError

Rows = Union[str, "os.PathLike[str]", Iterable[Mapping[str, Any]]]  # a file's name, or rows


def records(rows: Any) -> Iterable[Any]:
    """The rows of a table: pandas (to_dict), Arrow (to_pylist), polars (to_dicts); of others what they iterate over."""
    for name in ("to_pylist", "to_dicts"):
        if hasattr(rows, name):
            return getattr(rows, name)()
    if hasattr(rows, "to_dict") and hasattr(rows, "columns"):
        return rows.to_dict("records")
    return rows


def plain(value: Any) -> Any:
    """Gives JSON's form of what it has no name for: NumPy's numbers and arrays."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a value of type {type(value).__name__}")


def lines(rows: Any, key: str) -> Iterator[str]:
    """One line of JSON for each row. InputError that names key and row, counted from 1."""
    if isinstance(rows, (Mapping, bytes)) or not hasattr(records(rows), "__iter__"):
        raise InputError(f"[{key}] expected rows, each a dict, got {type(rows).__name__}; "
                         'try [{"prompt": "2+2=", "ground_truth": "4"}]')
    for number, row in enumerate(records(rows), 1):
        if not isinstance(row, Mapping):
            raise InputError(f"[{key} row {number}] expected a dict, got {row!r:.100}")
        try:
            yield json.dumps(dict(row), default=plain, ensure_ascii=False, allow_nan=False) + "\n"
        except (TypeError, ValueError) as error:
            raise InputError(f"[{key} row {number}] expected values that JSON has, got {error}; "
                             "try None for a missing value") from error


def _mark(run: pathlib.Path) -> str:
    """Differs between two runs in one directory; "" where there is none."""
    try:
        return str((run / "config.resolved.yaml").stat().st_mtime_ns)
    except FileNotFoundError:
        return ""


def set_aside(file: pathlib.Path) -> None:
    """Keeps a copy of the rows of the run that is there, by its mark, before other rows take their name."""
    mark = _mark(file.parent.parent)
    if not mark or not file.exists():
        return
    part = file.with_suffix(f".{os.getpid()}.part")
    shutil.copyfile(file, part)
    part.replace(file.with_name(f"{file.name}.of-{mark}"))


def _settle(run: pathlib.Path) -> None:
    for kept in (run / "rows").glob("*.of-*"):
        name, _, mark = kept.name.rpartition(".of-")
        if mark == _mark(run):
            kept.replace(kept.with_name(name))
        else:
            kept.unlink()


@contextlib.contextmanager
def restored_unless_removed(run: pathlib.Path) -> Iterator[None]:
    """At its end, and at its beginning for a process that was killed inside, rows that were set aside come back if
    their run is still there: nothing is changed by a call that is refused."""
    _settle(run)
    try:
        yield
    finally:
        _settle(run)


def write_rows(rows: Any, key: str, path: pathlib.Path, kept: bool) -> None:
    """Writes them as a file. `kept`: a run has begun with the file that is there, which therefore stays: InputError for
    other rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8", errors="surrogatepass") as file:
            file.writelines(lines(rows, key))
        if kept and path.exists() and path.read_bytes() != part.read_bytes():
            raise InputError(f"[{key}] expected the rows that the run in {path.parent.parent} began with, got others; "
                             "try another output, or overwrite=True")
        if not (kept and path.exists()):
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)
