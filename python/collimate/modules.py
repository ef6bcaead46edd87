"""Modules in Python: a class whose methods are functions over batches, which a flow calls by their names.

    @collimate.module(score=collimate.function(needs=["reward"], makes=["reward"]))
    class Halved:
        def score(self, rows): return {"reward": [reward / 2 for reward in rows["reward"]]}
"""

from __future__ import annotations

import array
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from collimate.errors import InputError

# Python's array calls a column's type so.
CODES = {"uint8": "B", "int16": "h", "int32": "i", "int64": "q", "float32": "f"}


def numbers(kind: str, data: bytes) -> array.array:
    if kind not in CODES:
        raise InputError(f"[collimate.module] expected columns of {', '.join(CODES)} or json, got one of {kind}")
    made = array.array(CODES[kind])
    made.frombytes(data)
    return made


class Rows:
    """The rows of one call. rows["reward"] is an array with a number for each row, rows["ids"] a list with an array for
    each row, a JSON column a list of its objects."""

    def __init__(self, header: Dict[str, Any], frames: Sequence[bytes]):
        self.count: int = header["rows"]
        self.schemas: Dict[str, Dict[str, Any]] = {}
        self._columns: Dict[str, Any] = {}
        left = iter(frames)
        for entry in header["columns"]:
            schema = entry["schema"]
            self.schemas[schema["name"]] = schema
            self._columns[schema["name"]] = self._column(schema, entry, left)

    def _column(self, schema: Dict[str, Any], entry: Dict[str, Any], frames: Any) -> Any:
        if schema["type"] == "json":
            return entry["objects"]
        values = numbers(schema["type"], next(frames))
        width = 1
        for size in schema["inner"]:
            width *= size
        if schema["ragged"]:
            ends = numbers("int64", next(frames))
            return [values[ends[i] * width:ends[i + 1] * width] for i in range(self.count)]
        return values if not schema["inner"] else [values[i * width:(i + 1) * width] for i in range(self.count)]

    def __len__(self) -> int:
        return self.count

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> Any:
        if name not in self._columns:
            raise KeyError(f"column {name!r}; the rows have {', '.join(self._columns)}")
        return self._columns[name]


def kind_of(values: Sequence[Any]) -> str:
    flat = values[0] if values and isinstance(values[0], (list, tuple, array.array)) else values
    if any(isinstance(value, (str, dict)) or value is None for value in flat):
        return "json"
    return "float32" if any(isinstance(value, float) for value in flat) else "int64"


def encoded_columns(made: Dict[str, Any], rows: Rows) -> Tuple[Dict[str, Any], List[bytes]]:
    """Gives what a function has made as batch/wire.cpp reads it. A column keeps the type that the rows have it in."""
    header: Dict[str, Any] = {"rows": rows.count, "columns": []}
    frames: List[bytes] = []
    for name, values in made.items():
        if len(values) != rows.count:
            raise ValueError(f"column {name!r} has {len(values)} values, and there are {rows.count} rows")
        ragged = bool(values) and isinstance(values[0], (list, tuple, array.array))
        schema = rows.schemas.get(name) or {"name": name, "type": kind_of(values), "inner": [], "ragged": ragged}
        entry: Dict[str, Any] = {"schema": schema}
        header["columns"].append(entry)
        if schema["type"] == "json":
            entry["objects"] = list(values)
            continue
        flat = [one for value in values for one in value] if ragged else values
        frames.append(array.array(CODES[schema["type"]], flat).tobytes())
        if schema["ragged"]:
            ends = array.array("q", [0])
            for value in values:
                ends.append(ends[-1] + len(value))
            frames.append(ends.tobytes())
    return header, frames


def function(needs: Sequence[str] = (), makes: Sequence[str] = (), each: str = "row",
             deterministic: bool = True) -> Dict[str, Any]:
    """Tells what the scheduler knows of a function: the columns that it needs and makes, the least rows that one call
    may get (`each`: row, group, iteration), and whether the same rows give the same again; else its results are
    journaled."""
    return {"needs": list(needs), "makes": list(makes), "granularity": each, "deterministic": deterministic}


class Made:
    """One object of a module, as its process has it."""

    def __init__(self, made: Any):
        self.object = made

    def answer(self, request: Dict[str, Any], frames: Sequence[bytes]) -> Tuple[Dict[str, Any], List[bytes]]:
        if "save" in request:
            return {"state": self.object.save() if hasattr(self.object, "save") else None}, []
        if "load" in request:
            self.object.load(request["load"])
            return {}, []
        rows = Rows(request["batch"], frames)
        given = getattr(self.object, request["call"])(rows)
        metrics = dict(given.pop("metrics", {})) if isinstance(given, dict) else {}
        header, made = encoded_columns(given or {}, rows)
        return {"batch": header, "metrics": [[name, float(value)] for name, value in metrics.items()]}, made


CURRENT: Optional[Made] = None  # of a process that is a module's
MODULES: Dict[str, Tuple[Callable[..., Any], Dict[str, Any]]] = {}


def module(name: Optional[str] = None, **functions: Dict[str, Any]) -> Callable[[type], type]:
    """Marks a class as a module, which page.model(NAME, KIND, …) names by `name`, else by the class's own in small
    letters. Each keyword is a method with its collimate.function. An object is made in a process of its own for each
    worker, with page.model's keywords. A method gets Rows and gives a dict of columns, with "metrics" beside them.
    `save` gives what a checkpoint keeps, in JSON, and `load` gets it."""

    def mark(marked: type) -> type:
        kind = name or marked.__name__.lower()
        if kind in MODULES:
            raise InputError(f"[collimate.module] expected a name that is free, got \"{kind}\" again")
        missing = [one for one in functions if not callable(getattr(marked, one, None))]
        if missing or not functions:
            raise InputError(f"[collimate.module] expected methods of {marked.__name__}, got "
                             f"{', '.join(missing) or 'no function'}")
        told = {"name": kind, "functions": [{"name": one, **spec} for one, spec in functions.items()]}
        MODULES[kind] = (marked, told)
        return marked

    return mark
