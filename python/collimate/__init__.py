"""Collimate from Python: the recipes of the command line in the caller's process, and rewards written in Python.

    result = collimate.train("grpo.yaml", data=rows, rewards=[score], callbacks=[print])
    collimate.generate(result.model, ["2+2="])
"""

import sys

from collimate.flows import flow, link, merge
from collimate.losses import loss
from collimate.modules import function, module

# A program of the package, `python -m collimate.reward_worker`, runs under any interpreter and needs none of the rest.
# While it is looked for argv is ["-m"]; orig_argv is new in Python 3.10.
_words = getattr(sys, "orig_argv", ["collimate."])
if sys.argv[:1] != ["-m"] or not any(word.startswith("collimate.") for word in _words):
    from collimate.api import STOP, TrainResult, check, evaluate, generate, train
    from collimate.curve import LiveCurve
    from collimate.errors import Error, GuardError, InputError, RunError, StoppedError

    __all__ = ["STOP", "Error", "GuardError", "InputError", "LiveCurve", "RunError", "StoppedError", "TrainResult",
               "check", "evaluate", "flow", "function", "generate", "link", "loss", "merge", "module", "train"]
