"""Loads the extension module, after a look whether the libraries that it needs are there."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
import types

TORCH = "2.11.0"  # tools/requirements.txt; checked by tests/tools/python_package_test.py
# The package brings the engine of structured output along; pyarrow is for Parquet alone, whose reader names it.
REMEDY = (f"pip install --no-deps torch=={TORCH} nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85 "
          "(no other package of CUDA is needed)")


def check_torch() -> None:
    """ImportError with the command that installs what is missing."""
    try:
        found = importlib.metadata.version("torch").split("+")[0]
    except importlib.metadata.PackageNotFoundError:
        found = "none"
    if found != TORCH:
        raise ImportError(f"[collimate] expected torch {TORCH}, whose libraries it computes with, got {found}; "
                          f"try {REMEDY}")


def load() -> types.ModuleType:
    """The extension module. ImportError where there is none, as beside an installed program."""
    if importlib.util.find_spec("collimate._native") is None:
        raise ImportError("[collimate] expected the package with its library, got the helpers of a program, which have "
                          "none; try pip install --no-deps . in a checkout of Collimate")
    check_torch()
    try:
        from collimate import _native
    except ImportError as error:
        raise ImportError(f"[collimate] expected its libraries, got {error}; try {REMEDY}") from error
    return _native


PROGRAM = os.path.join(os.path.dirname(__file__), "bin", "collimate")  # the command line
os.environ.setdefault("COLLIMATE_PYTHON", sys.executable)  # rewards in files run under the Python that has this package
