"""Collimate raises these. A message reads "[where] expected X, got Y; try Z", as on the command line."""


class Error(Exception):
    """Base of them all."""


class InputError(Error, ValueError):
    """The config, a file, a row or an argument is wrong; nothing was changed."""


class RunError(Error, RuntimeError):
    """The run failed: a reward, the disk, a worker."""


class GuardError(RunError):
    """A guard stopped the run: log-probs that differ, or numbers that are none."""


class StoppedError(Error):
    """A signal stopped the run after its state was saved, and the process has no other use for that signal."""
