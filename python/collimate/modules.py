"""Modules in Python: a class whose methods are functions over batches, which a flow calls by their names.

    @collimate.module(score=collimate.function(needs=["reward"], makes=["reward"]))
    class Halved:
        def score(self, rows): return {"reward": [reward / 2 for reward in rows["reward"]]}
"""

from __future__ import annotations

import array
import struct
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from collimate import arguments
from collimate.errors import InputError

# Python's array calls a column's type so.
CODES = {"uint8": "B", "int16": "h", "int32": "i", "int64": "q", "float32": "f"}
# Types as a declaration has them, "bonus:f32".
DECLARED = {"u8": "uint8", "i16": "int16", "i32": "int32", "i64": "int64", "f32": "float32", "json": "json"}
# The columns that every part of the system agrees on (batch/standard_keys.h): a number for each row, and an array.
STANDARD = {"uid": "int64", "prompt_uid": "int64", "pair_uid": "int64", "prompt_tokens": "int64",
            "first_position": "int64", "finish": "int32", "reward": "float32", "score": "float32", "example": "json",
            "sampling": "json"}
STANDARD_OF_TOKENS = {"ids": "int32", "trainable": "uint8", "log_probs": "float32", "old_log_probs": "float32",
                      "reference_log_probs": "float32", "step": "int32", "step_rewards": "float32",
                      "values": "float32", "advantages": "float32", "returns": "float32", "weights_version": "int64"}


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


def is_list(value: Any) -> bool:
    """A list or an array, of NumPy too."""
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, dict)) and getattr(value, "ndim", 1) > 0


def is_number(value: Any) -> bool:
    return hasattr(value, "__float__") or hasattr(value, "__index__")


def schema_of(name: str, values: Sequence[Any], rows: Rows, declared: Dict[str, str]) -> Dict[str, Any]:
    """A column keeps the type that the rows have it in; a new one has that of its declaration, else that by which
    the system knows it, else 32-bit floats. It never follows from the numbers, which differ from call to call."""
    if name in rows.schemas:
        return rows.schemas[name]
    flat = values
    ragged = name in STANDARD_OF_TOKENS or bool(len(values)) and is_list(values[0])
    if ragged:
        flat = [one for value in values if is_list(value) for one in value]
    kind = declared.get(name) or STANDARD.get(name) or STANDARD_OF_TOKENS.get(name)
    kind = kind or ("float32" if all(map(is_number, flat)) else "json")
    return {"name": name, "type": kind, "inner": [], "ragged": ragged and kind != "json"}


def flattened(schema: Dict[str, Any], values: Sequence[Any]) -> Tuple[Sequence[Any], array.array]:
    """The numbers of all rows, and where each row ends, in elements of the column's inner shape."""
    width = 1
    for size in schema["inner"]:
        width *= size
    ends = array.array("q", [0])
    if not schema["ragged"] and not schema["inner"]:
        return values, ends
    for row, value in enumerate(values):
        size = len(value) if is_list(value) else -1
        if size < 0 or size % width or (not schema["ragged"] and size != width):
            what = "a list of numbers" if width == 1 else f"{'whole multiples of ' if schema['ragged'] else ''}{width}"
            raise ValueError(f"column {schema['name']!r} has {value!r:.40} in row {row}, expected {what}")
        ends.append(ends[-1] + size // width)
    return [one for value in values for one in value], ends


def encoded_columns(made: Dict[str, Any], rows: Rows, declared: Dict[str, str]) -> Tuple[Dict[str, Any], List[bytes]]:
    """Gives what a function has made as batch/wire.cpp reads it."""
    header: Dict[str, Any] = {"rows": rows.count, "columns": []}
    frames: List[bytes] = []
    for name, values in made.items():
        if len(values) != rows.count:
            raise ValueError(f"column {name!r} has {len(values)} values, and there are {rows.count} rows")
        schema = schema_of(name, values, rows, declared)
        entry: Dict[str, Any] = {"schema": schema}
        header["columns"].append(entry)
        if schema["type"] == "json":
            entry["objects"] = list(values)
            continue
        flat, ends = flattened(schema, values)
        try:
            frames.append(array.array(CODES[schema["type"]], flat).tobytes())
        except (TypeError, OverflowError) as error:
            raise ValueError(f"column {name!r} is of {schema['type']}: {error}") from error
        if schema["ragged"]:
            frames.append(ends.tobytes())
    return header, frames


def function(needs: Sequence[str] = (), makes: Sequence[str] = (), each: str = "row",
             deterministic: bool = True) -> Dict[str, Any]:
    """Tells what the scheduler knows of a function: the columns that it needs and makes, the least rows that one call
    may get (`each`: row, group, iteration), and whether the same rows give the same again; else its results are
    journaled. "bonus:i64" declares the type of a column: u8, i16, i32, i64, f32 or json."""
    where = "collimate.function"
    for column in arguments.texts(where, "makes", makes):
        if ":" in column and column.split(":")[1] not in DECLARED:
            raise arguments.wrong(where, f"the type of a column to be one of {', '.join(DECLARED)}", column)
    if each not in ("row", "group", "iteration"):
        raise arguments.wrong(where, "each to be one of row, group, iteration", each)
    return {"needs": arguments.texts(where, "needs", needs), "makes": list(makes), "granularity": each,
            "deterministic": arguments.truth(where, "deterministic", deterministic)}


def declared_types(spec: Dict[str, Any]) -> Dict[str, str]:
    typed = (column.split(":") for column in spec["makes"] if ":" in column)
    return {name: DECLARED[kind] for name, kind in typed}


class Made:
    """One object of a module, as its process has it."""

    def __init__(self, made: Any, told: Dict[str, Any]):
        self.object = made
        self.declared = {spec["name"]: declared_types(spec) for spec in told["functions"]}

    def answer(self, request: Dict[str, Any], frames: Sequence[bytes]) -> Tuple[Dict[str, Any], List[bytes]]:
        if "save" in request:
            return {"state": self.object.save() if hasattr(self.object, "save") else None}, []
        if "load" in request:
            self.object.load(request["load"])
            return {}, []
        rows = Rows(request["batch"], frames)
        given = getattr(self.object, request["call"])(rows)
        metrics = dict(given.pop("metrics", {})) if isinstance(given, dict) else {}
        header, made = encoded_columns(given or {}, rows, self.declared[request["call"]])
        values = [float(value) for value in metrics.values()]  # in a buffer: JSON has no word for infinity
        return {"batch": header, "metrics": list(metrics)}, [*made, struct.pack(f"<{len(values)}d", *values)]


CURRENT: Optional[Made] = None  # of a process that is a module's
MODULES: Dict[str, Tuple[Callable[..., Any], Dict[str, Any]]] = {}


def module(name: Optional[str] = None, **functions: Dict[str, Any]) -> Callable[[type], type]:
    """Marks a class as a module, which page.model(NAME, KIND, …) names by `name`, else by the class's own in small
    letters. Each keyword is a method with its collimate.function. An object is made in a process of its own for each
    worker, with page.model's keywords. A method gets Rows and gives a dict of columns, with "metrics" beside them.
    `save` gives what a checkpoint keeps, in JSON, and `load` gets it."""

    def mark(marked: type) -> type:
        kind = arguments.text("collimate.module", "name", name or marked.__name__.lower())
        if kind in MODULES:
            raise InputError(f"[collimate.module] expected a name that is free, got \"{kind}\" again")
        missing = [one for one in functions if not callable(getattr(marked, one, None))]
        if missing or not functions:
            raise InputError(f"[collimate.module] expected methods of {marked.__name__}, got "
                             f"{', '.join(missing) or 'no function'}")
        if callable(getattr(marked, "save", None)) != callable(getattr(marked, "load", None)):
            raise InputError(f"[collimate.module] expected both save and load in {marked.__name__}, got one of them")
        plain = [one for one, spec in functions.items() if not isinstance(spec, dict) or "granularity" not in spec]
        if plain:
            raise InputError(f"[collimate.module] expected collimate.function(…) for {plain[0]}, got something else")
        told = {"name": kind, "functions": [{"name": one, **spec} for one, spec in functions.items()]}
        MODULES[kind] = (marked, told)
        return marked

    return mark
