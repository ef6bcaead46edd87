"""The verb plan prints what fits the terminal."""
import fcntl
import os
import pathlib
import pty
import struct
import subprocess
import termios
import unittest

PROGRAM = pathlib.Path(os.environ["COLLIMATE_BIN_DIR"]).resolve() / "collimate"
REQUEST = ["--flow", "ppo", "--models", "policy=llama2-7b,reward=opt-1.3b", "--cluster", "8xA100-80", "--rows", "512",
           "--prompt", "256", "--completion", "mean:300,0.8,1024"]


def widest_on_terminal(columns, *words):
    """Characters of the longest line that a call prints to a terminal of so many columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with subprocess.Popen([PROGRAM, *words], stdout=slave, stderr=subprocess.DEVNULL) as process:
        os.close(slave)
        printed = b""
        try:
            while more := os.read(master, 65536):
                printed += more
        except OSError:  # how a terminal whose last writer has gone ends
            pass
        os.close(master)
    assert process.returncode == 0, printed
    return max(len(line) for line in printed.decode().splitlines())


class Width(unittest.TestCase):
    def test_the_lines_of_a_plan_fit_the_terminal(self):
        for columns in (80, 120, 180):
            for words in ([*REQUEST, "--explain"], [*REQUEST, "--sweep", "devices=8,16"], ["--list", "constants"]):
                self.assertLessEqual(widest_on_terminal(columns, "plan", *words), columns, words)
        printed = subprocess.run([PROGRAM, "plan", *REQUEST], capture_output=True, text=True, check=True).stdout
        self.assertLessEqual(max(len(line) for line in printed.splitlines()), 120)


if __name__ == "__main__":
    unittest.main()
