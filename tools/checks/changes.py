"""Tells which files changed lately, as far as a clone can tell."""
import os
import subprocess

from checks.tree import ROOT

DAY = 24 * 60 * 60


def git(*words: str) -> str:
    """Gives what git prints; "" when it fails."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def base() -> str:
    """The commit that changes count from: $COLLIMATE_BASE; else where HEAD left the branch that was cloned; else, when
    HEAD is on it, its newest commit that is a day older than HEAD; else, as in a shallow clone, the oldest there is."""
    if asked := os.environ.get("COLLIMATE_BASE", ""):
        return git("rev-parse", asked)
    head, left = git("rev-parse", "HEAD"), git("merge-base", "HEAD", "origin/HEAD")
    if left and left != head:
        return left
    before = int(git("log", "-1", "--format=%ct", "HEAD") or 0) - DAY
    return git("log", "-1", "--first-parent", f"--until={before}", "--format=%H", "HEAD") or \
        git("rev-list", "--first-parent", "HEAD").split("\n")[-1]


def changed_files() -> tuple:
    """(the commit, files that differ from it): those not committed yet first, then by their newest commit."""
    since = base()
    listed = git("diff", "--name-only", "HEAD") + "\n" + git("log", "--name-only", "--format=", f"{since}..HEAD")
    differ = set(git("diff", "--name-only", since).splitlines())
    return since[:12], [path for path in dict.fromkeys(listed.splitlines()) if path in differ]
