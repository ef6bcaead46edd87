"""These tests complete words in each shell and read the man page, as `collimate completion` prints them."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path(os.environ["COLLIMATE_BIN_DIR"]).resolve() / "collimate"


def run(*words: str, **options) -> str:
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)
    if done.returncode or done.stderr:
        raise AssertionError(f"{words[0]}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


class Completion(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())

    def script(self, kind: str) -> str:
        path = pathlib.Path(self.directory, kind)
        path.write_text(run(PROGRAM, "completion", kind))
        return str(path)

    def need(self, program: str) -> None:
        if not shutil.which(program):
            self.skipTest(f"no {program}; tools/setup.sh test installs it")

    def expect(self, complete) -> None:
        """complete(words before, the one begun) -> candidates."""
        self.assertIn("train", complete([], "tr"))
        self.assertNotIn("chat", complete([], "tr"))
        self.assertIn("--resume", complete(["train", "run.yaml"], "--r"))
        self.assertIn("--resume", complete(["train", "--dry-run"], "--r"))  # which takes no value
        keys = complete(["train", "run.yaml", "--set"], "run.it")
        self.assertIn("run.iterations", [key.rstrip("=") for key in keys])
        keys = complete(["train", "run.yaml"], "--set=run.it")
        self.assertTrue(any(key.rstrip("=").endswith("run.iterations") for key in keys), keys)
        self.assertEqual(sorted(complete(["chat", "tiny", "--chat-template"], "")),
                         ["auto", "chatml", "plain", "user-bot"])
        self.assertEqual(complete(["eval", "tiny", "--measure"], "perp"), ["perplexity"])
        pathlib.Path(self.directory, "grown.jsonl").touch()
        self.assertEqual(complete(["generate", "tiny", "--data"], "grow"), ["grown.jsonl"])
        self.assertIn("grpo", complete(["init"], "g"))
        self.assertIn("quickstart", complete(["bench"], "q"))
        self.assertIn("--reduced", complete(["bench", "quickstart"], "--re"))

    def test_bash(self):
        script = self.script("bash")

        def complete(before: list, word: str) -> list:
            words = ["collimate", *before, *filter(None, re.split("(=)", word))] if word else ["collimate", *before, ""]
            code = 'source "$1"; shift; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _collimate; ' \
                   'printf "%s\\n" "${COMPREPLY[@]}"'
            return run("bash", "--norc", "-c", code, "bash", script, *words, cwd=self.directory).split()

        self.expect(complete)

    def test_fish(self):
        self.need("fish")
        script = self.script("fish")

        def complete(before: list, word: str) -> list:
            line = " ".join(["collimate", *before, word])
            out = run("fish", "--no-config", "-c", f"source {script}; complete -C '{line}'", cwd=self.directory)
            return [candidate.split("\t")[0] for candidate in out.splitlines()]

        self.expect(complete)

    def test_zsh(self):
        """In an interactive shell on a pseudo-terminal: completion exists nowhere else."""
        self.need("zsh")
        init, harness = (pathlib.Path(self.directory, name) for name in ("init", "harness"))
        init.write_text(ZSH_INIT)
        harness.write_text(ZSH_HARNESS)
        environment = {**os.environ, "SCRIPT": self.script("zsh"), "INIT": str(init), "TERM": "dumb"}

        def complete(before: list, word: str) -> list:
            return run("zsh", "-f", str(harness), " ".join(["collimate", *before, word]), cwd=self.directory,
                       env=environment, timeout=60).splitlines()

        self.expect(complete)

    def test_the_man_page_renders_without_warnings(self):
        page = self.script("man")
        renderers = {"mandoc": ("mandoc", "-T", "lint", "-W", "warning", page),
                     "groff": ("groff", "-ww", "-man", "-T", "utf8", "-z", page)}
        there = [command for name, command in renderers.items() if shutil.which(name)]
        if not there:
            self.skipTest("neither mandoc nor groff; tools/setup.sh test installs the first")
        for command in there:
            self.assertEqual(run(*command), "")
        self.assertIn("collimate train CONFIG", pathlib.Path(page).read_text())


# This prints what each call of compadd would offer; calls that only ask for matches are left as they are.
ZSH_INIT = r"""
PROMPT= RPROMPT=
autoload -Uz compinit
compinit -D -u
source $SCRIPT
compadd() {
  local -a offered
  if [[ " $* " == *" -"[OAD]" "* ]]; then
    builtin compadd "$@"
    return
  fi
  builtin compadd -A offered "$@"
  local one
  for one in $offered; do print -r -- "<$one>"; done
}
offer() { zle complete-word; print -r -- "E""ND" }
zle -N offer
bindkey '^I' offer
print -r -- "BE""GIN"
"""
ZSH_HARNESS = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "source $INIT"
local line
until [[ $line == *BEGIN* ]]; do zpty -r shell line; done
zpty -n -w shell "$1"$'\t'
while zpty -r shell line && [[ $line != *END* ]]; do
  [[ $line == *'<'*'>'* ]] && print -r -- "${${line##*<}%%>*}"
done
zpty -d shell
"""


if __name__ == "__main__":
    unittest.main()
