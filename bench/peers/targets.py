"""How many times a peer's speed is aimed at, on machines without and with AMX, and which of the two this one is."""

import pathlib

AMX = "amx_tile" in pathlib.Path("/proc/cpuinfo").read_text()
COLUMN = int(AMX)
TRAINING = {  # by part of compare.py and peer
    "sft": {"torch loop": (1.25, 1.8), "TRL": (1.75, 3.5)},
    "dpo": {"torch loop": (1.35, 1.8), "TRL": (1.9, 3.5)},
    "grpo": {"TRL": (3.3, 8)},
    "grpo-260k": {"TRL": (6, 6)},
    "grpo-110m": {"TRL": (1.7, 4)},
}
DECODE = {  # by model and batch, against the best peer
    "260k": {8: (10, 10), 32: (6, 6), 64: (6, 6)},
    "15m": {1: (1, 1.4), 8: (1.7, 2), 32: (2.2, 3), 64: (2.2, 3)},
    "110m": {1: (1, 1.4), 8: (1.5, 1.8), 32: (1.7, 2.2), 64: (1.7, 2.2)},
    "0.5b": {1: (1.1, 1.5), 8: (1.3, 1.4), 32: (1.3, 1.8)},
}
SCORING = {  # by model and work
    "15m": {"distinct": (1.6, 2), "shared": (1.6, 2)},
    "110m": {"distinct": (1, 1.5), "shared": (1.3, 1.5)},
}
SERVER = {8: (1.7, 1.7), 64: (1.7, 1.7)}  # requests per second by clients
READY_SECONDS = {"15m": 0.5, "0.5b": 2.0}
IDLE_MIB = 250  # above the size of the weights' file


def shown(entry):
    """Gives this machine's number of a pair as above, as text; empty for None."""
    return "" if entry is None else f"{entry[COLUMN]:g}"
