"""Ctrl-C while a reward of the caller's process hangs."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

from python_support import PACKAGE, PATIENCE, config, problems, write_model

import collimate

# A reward that at one of its calls sends the process SIGINT and then never returns, unless something is raised in it.
CHILD = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
import collimate

calls = 0

def hangs(prompts, completions, **columns):
    global calls
    calls += 1
    if calls < {call_that_hangs}:
        return [0.0] * len(prompts)
    for _ in range({times}):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)  # or the system makes one signal of two
    while True:
        time.sleep(0.01)

try:
    {call}
except KeyboardInterrupt as error:
    print("stopped:", error)
"""


class HangingReward(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.model = write_model(self.root / "start")

    def said(self, call: str, call_that_hangs: int, times: int) -> str:
        program = CHILD.format(call=call, call_that_hangs=call_that_hangs, times=times)
        done = subprocess.run([sys.executable, "-c", program, str(PACKAGE)], capture_output=True, text=True,
                              timeout=PATIENCE)
        return done.stdout + done.stderr

    def train(self, **hang) -> str:
        """Gives what a run says whose first call of the reward is the trial of the first row."""
        given = f"{config(self.model)!r}, {problems(8)!r}, [hangs], output={str(self.root / 'run')!r}"
        return self.said(f"collimate.train({given})", **hang)

    def test_the_second_ctrl_c_ends_training(self):
        self.assertIn("stopped: [run] stopped at once", self.train(call_that_hangs=2, times=2))

    def test_the_first_one_ends_the_trial_before_it(self):
        self.assertIn("stopped:", self.train(call_that_hangs=1, times=1))

    def test_the_first_one_ends_an_evaluation(self):
        trained = collimate.train(config(self.model, "sft", run={"iterations": 1}),
                                  [{"prompt": "1=", "completion": "1"}] * 8, output=self.root / "run").model
        call = f"collimate.evaluate({str(trained)!r}, {problems(2)!r}, [hangs])"
        self.assertIn("stopped:", self.said(call, call_that_hangs=2, times=1))


if __name__ == "__main__":
    unittest.main()
