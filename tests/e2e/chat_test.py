"""`collimate chat` through pipes and at a terminal."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from serve_support import PATIENCE, PROGRAM, WithModel


class WithSaved(WithModel):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.saved = cls.root / "saved.jsonl"

    def messages(self) -> list:
        return [json.loads(line)["messages"] for line in self.saved.read_text().splitlines()]


class Pipes(WithSaved):
    def talk(self, *lines: str, flags: tuple = (), code: int = 0, seed: int = 1, tokens: int = 20) -> str:
        done = subprocess.run([PROGRAM, "chat", self.model, "--max-tokens", str(tokens), "--seed", str(seed), *flags],
                              input="".join(line + "\n" for line in lines), capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def test_pipes(self):
        shown = self.talk("12:", "34:", f"/save {self.saved}", flags=("--system", "0"))
        conversation = self.messages()[0]
        self.assertEqual([message["role"] for message in conversation],
                         ["system", "user", "assistant", "user", "assistant"])
        self.assertEqual(shown, f"{conversation[2]['content']}\n{conversation[4]['content']}\nsaved in {self.saved}\n")
        self.assertEqual(self.talk("12:", "34:", flags=("--system", "0")) + f"saved in {self.saved}\n", shown)
        self.assertNotEqual(self.talk("12:", "34:", flags=("--system", "0"), seed=2), shown)

    def test_a_stop_string(self):
        whole = self.talk("12:")
        stop = whole[1:3]
        self.assertEqual(self.talk("12:", flags=("--stop", stop)), whole[:whole.index(stop)] + "\n")

    def test_the_models_own_sampling(self):
        """generation_config.json says how tokens are drawn where no flag does."""
        file = self.model / "generation_config.json"
        plain = self.talk("12:", seed=2)
        greedy = self.talk("12:", flags=("--temperature", "0"))
        file.write_text(json.dumps({"do_sample": False, "transformers_version": "4.40.0"}))
        self.addCleanup(file.unlink)
        self.assertEqual(self.talk("12:", seed=2), greedy)
        self.assertEqual(self.talk("12:", seed=2, flags=("--temperature", "1")), plain)
        self.assertEqual(self.talk("12:", seed=2, flags=("--generation-config", "none")), plain)
        asked = [PROGRAM, "chat", self.model, "--max-tokens", "2"]
        done = subprocess.run(asked, input="12:\n", capture_output=True, text=True, timeout=PATIENCE)
        self.assertIn(f"tokens are drawn with temperature 0.0, as {file} says; --generation-config none", done.stderr)
        file.write_text(json.dumps({"top_p": 1.5}))
        self.assertIn(f"[{file}] expected top_p to be", self.talk(code=2))

    def test_a_small_cache(self):
        """An answer ends with the cache, whatever --max-tokens would allow."""
        shown = self.talk("12:", f"/save {self.saved}", flags=("--cache-blocks", "2"), tokens=512)
        self.assertEqual(shown, f"{self.messages()[0][1]['content']}\nsaved in {self.saved}\n")

    def test_compare(self):
        shown = self.talk("12:", f"/save {self.saved}", flags=("--compare", str(self.model)))
        left, right = self.messages()
        self.assertEqual(left, right)
        rows = [[half.strip() for half in row.split(" |")] for row in shown.splitlines()[2:-1]]
        self.assertEqual("".join(row[0] for row in rows), left[1]["content"])
        self.assertEqual("".join(row[1] for row in rows), left[1]["content"])

    def test_what_is_wrong_is_said(self):
        self.assertIn("model directory", self.talk(flags=("--compare", "/nowhere"), code=2))
        self.assertIn("between 0 and", self.talk(flags=("--temperature", "-1"), code=2))
        self.assertIn("leaves out a message of 'system'",
                      self.talk(flags=("--system", "7", "--chat-template", "user-bot"), code=2))

    def test_answers_that_do_not_arrive(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "chat", self.model, "--max-tokens", "2"], input="12:\n", stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("expected standard output that takes all that is printed", done.stderr)

    def test_what_is_saved_can_be_trained_on(self):
        self.talk("12:", f"/save {self.saved}")
        config = self.saved.with_suffix(".yaml")
        config.write_text(f"recipe: sft\nmodels: {{policy: {{path: {self.model}, chat_template: plain}}}}\n"
                          f"data: {{train: {self.saved}}}\n"
                          "train: {samples_per_update: 1}\n")
        done = subprocess.run([PROGRAM, "check", config], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)


class Terminal(WithSaved):
    def start(self, *flags: str, term: str = "vt100", max_tokens: int = 60000):
        """In the model's directory, on a terminal of 63 columns."""
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = term
            os.chdir(self.model.parent)
            os.execv(PROGRAM, [str(PROGRAM), "chat", "tiny", "--max-tokens", str(max_tokens), "--temperature", "0",
                               "--cache-blocks", "5000", *flags])
        self.pid, self.shown, self.everything = pid, "", ""
        self.addCleanup(self.end)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 63, 0, 0))

    def end(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.terminal)

    def expect(self, pattern: str) -> str:
        """Reads until the pattern is there; what was shown up to its end is used up."""
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.shown, re.DOTALL)):
            ready, _, _ = select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"no {pattern!r} in {self.shown!r}")
            try:
                part = os.read(self.terminal, 65536).decode(errors="replace")
            except OSError:
                raise AssertionError(f"it ended without {pattern!r}: {self.shown!r}") from None
            self.shown += part
            self.everything += part
        self.shown = self.shown[found.end():]
        return found[0]

    def type(self, text: str):
        """Lines are typed once libedit has taken the terminal over, a moment after its prompt; on one that it leaves as
        it is, after two seconds."""
        deadline = time.monotonic() + 2
        while text[-1] in "\r\x04" and termios.tcgetattr(self.terminal)[3] & termios.ICANON \
                and time.monotonic() < deadline:
            time.sleep(0.01)
        os.write(self.terminal, text.encode())

    def exit_code_after(self, text: str) -> int:
        """Types it until the program ends: libedit shows its prompt a moment before it takes the terminal over, and
        what is typed between is the terminal's."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self.type(text)
            for _ in range(10):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.pid = 0
                    return os.waitstatus_to_exitcode(status)
                time.sleep(0.1)
        raise AssertionError(f"it did not end: {self.shown!r}")

    def test_editing_history_and_interrupt(self):
        self.start()
        self.expect("> ")
        self.type("/sysXX\x7f\x7ftem 7\r")  # two characters too many, taken back
        self.expect("> ")
        self.type("12:\r")
        self.expect(r"[\d,:]{20}")
        self.type("\x03")  # Ctrl-C ends the answer, not the program
        self.expect("> ")
        self.type("\x1b[A\x1b[A\r")  # two lines up in the history: /system 7 again, which says nothing
        self.expect("> ")
        self.type(f"/save {self.saved}\r")
        self.expect("saved in ")
        system, user, assistant = self.messages()[0]
        self.assertEqual((system["content"], user["content"]), ("7", "12:"))
        self.assertLess(len(assistant["content"]), 59000)
        self.expect("> ")
        self.assertEqual(self.exit_code_after("\x04"), 0)  # Ctrl-D

    def test_a_dumb_terminal(self):
        """One that has no escape sequences: lines can be edited and answers read all the same."""
        self.start(term="dumb", max_tokens=30)
        self.expect("> ")
        self.type("12XX\x7f\x7f:\r")
        self.expect(r"[\d,:]{10,}\r\n> ")
        self.type(f"/save {self.saved}\r")
        self.expect("saved in .*> ")
        user, assistant = self.messages()[0]
        self.assertEqual(user["content"], "12:")
        self.assertIn(assistant["content"] + "\r\n", self.everything)
        self.assertNotIn("\x1b", self.everything)
        self.assertEqual(self.exit_code_after("\x04"), 0)

    def test_two_models_side_by_side(self):
        self.start("--compare", "./tiny")
        self.expect("> ")
        self.type("12:\r")
        self.expect(r"tiny {26} \| \./tiny\r\n")
        self.expect(r"([\d,:]{30} \| [\d,:]{30}\r\n){3}")  # as they come, in halves of the terminal's width
        self.type("\x03")  # both stop
        self.expect("> ")
        self.type(f"/save {self.saved}\r")
        self.expect("saved in .*> ")
        (_, left), (_, right) = self.messages()
        self.assertEqual(left, right)  # a model beside itself
        self.assertGreater(len(left["content"]), 90)
        self.assertLess(len(left["content"]), 59000)
        self.assertEqual(self.exit_code_after("\x04"), 0)


if __name__ == "__main__":
    unittest.main()
