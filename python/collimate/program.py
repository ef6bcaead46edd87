"""The command `collimate` of a pip installation: starts the program beside this package."""

import os
import sys

from collimate.library import PROGRAM, check_torch


def main() -> None:
    try:
        check_torch()
    except ImportError as error:
        sys.exit(str(error))
    os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])
