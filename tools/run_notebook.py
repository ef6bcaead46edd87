#!/usr/bin/env python3
"""Executes a notebook's code cells in order, in one IPython shell: tools/run_notebook.py FILE.ipynb [--write]

Ends with exit code 1 at the first cell that raises. --write keeps what cells display and print in the notebook: of a
display that was updated the last picture.
"""
import argparse
import json
import pathlib
import sys

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output


def displayed(outputs: list) -> list:
    """As a notebook stores them."""
    shown = {}
    for number, output in enumerate(outputs):
        shown[(output.transient or {}).get("display_id", number)] = output.data
    return [{"output_type": "display_data", "data": {kind: text.splitlines(True) for kind, text in data.items()},
             "metadata": {}} for data in shown.values()]


def run(cell: dict, number: int, shell: InteractiveShell) -> bool:
    with capture_output() as captured:
        result = shell.run_cell("".join(cell["source"]))
    print(captured.stdout, end="", flush=True)
    printed = [{"output_type": "stream", "name": "stdout", "text": captured.stdout.splitlines(True)}]
    cell["execution_count"] = number
    cell["outputs"] = displayed(captured.outputs) + (printed if captured.stdout else [])
    return result.success


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebook", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    notebook = json.loads(options.notebook.read_text())
    shell = InteractiveShell.instance()
    shell.run_line_magic("colors", "nocolor")
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(code, 1):
        if not run(cell, number, shell):
            print(f"cell {number} of {options.notebook} raised", file=sys.stderr)
            return 1
    if options.write:
        options.notebook.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
