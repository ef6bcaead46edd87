"""The rows of a results file: comma-separated values with a header line."""
import csv
import io
import os
import sys

COLUMNS = ("id paper algo actor critic ref reward n_gpus gpu_type batch prompt_len gen_len system baseline metric "
           "value value_hi unit phase placement parallelism note").split()
OPTIONAL = ("value_hi", "note")
LONGEST_FIELD = 4000


def refuse(where, expected, got):
    print(f"[{where}] expected {expected}, got {got}", file=sys.stderr)
    sys.exit(2)


def records_of(text, where):
    if text.count('"') % 2:
        refuse(where, "a closing double quote", "the end of the file")
    csv.field_size_limit(sys.maxsize)
    return [record for record in csv.reader(io.StringIO(text, newline="")) if record not in ([], [""])]


def row_of(names, fields, number):
    """A row of another width, or with a field too long to be one, is kept with its fault."""
    row = {**dict.fromkeys(COLUMNS, ""), **{name: field[:LONGEST_FIELD] for name, field in zip(names, fields)}}
    row["fault"] = "" if len(fields) == len(names) else f"{len(fields)} fields instead of {len(names)}"
    for name, field in zip(names, fields):
        if len(field) > LONGEST_FIELD:
            row["fault"] = f"'{name}' has {len(field)} characters, more than {LONGEST_FIELD}"
    row["id"] = row["id"] or f"row {number}"
    return row


def read_rows(path):
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            refuse(path, "a regular file", "something else")
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
            records = records_of(file.read(), path)
    except OSError:
        refuse(path, "a file of published results", "no such file")
    if len(records) < 2:
        refuse(path, "a header and at least one row", "none")
    for name in COLUMNS:
        if name not in records[0] and name not in OPTIONAL:
            refuse(path, f"a column {name}", "none")
    return [row_of(records[0], fields, at) for at, fields in enumerate(records[1:], 1)]
