"""`collimate train` draws on a terminal while its workers and its Python rewards print lines of their own."""
import os
import pty
import re
import tempfile
import pathlib
import unittest

from serve_support import PROGRAM, make_model

REWARD = """import sys
def score(prompts, completions, **columns):
    print("printed by the reward")
    print("half a line and ", end="")
    print("its end", file=sys.stdout)
    print("complained", file=sys.stderr)
    if prompts[0] == "9:":
        raise ValueError("no nines")
    return [float(len(c)) for c in completions]
"""
CONFIG = """recipe: grpo
models: {{policy: {{path: {root}/model}}}}
data: {{train: {root}/rows.jsonl, shuffle: false}}
reward: [{{python: "{root}/reward.py:score", batch_samples: 1, on_error: 0}}]
rollout: {{prompts_per_iteration: 4, samples_per_prompt: 2, prompt_tokens: 8, completion_tokens: 8}}
run: {{iterations: 4}}
log: {{every: 3}}
cluster: local-processes
"""
BAR, CLEARED = "[\u2588\u2591]", r"(\n|\x1b\[2K)"


def shown_on_a_terminal(*command: str) -> str:
    """All that the command writes to a terminal; it must succeed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    shown = b""
    try:
        while part := os.read(terminal, 65536):
            shown += part
    except OSError:  # the other side is closed
        pass
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    text = shown.decode()
    if os.waitstatus_to_exitcode(status) != 0:
        raise AssertionError(text)
    return text


class LinesBesideABar(unittest.TestCase):
    def setUp(self):
        self.root = root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        make_model(root / "model")
        (root / "reward.py").write_text(REWARD)
        (root / "rows.jsonl").write_text("".join(f'{{"prompt": "{digit}:"}}\n' for digit in range(10)))
        (root / "run.yaml").write_text(CONFIG.format(root=root))

    def test_no_line_begins_in_a_bar(self):
        root = self.root
        shown = shown_on_a_terminal(str(PROGRAM), "train", f"{root}/run.yaml", "--output", f"{root}/run")
        self.assertRegex(shown, BAR)
        lines = ("printed by the reward", "half a line and its end", "complained",
                 r"[\d:.]{12} warning .* raised an exception; further")
        beside = shown[re.search(BAR, shown).start():]  # the trial of the reward comes ahead of any bar
        for line in lines:  # of a process of a process of the run
            whole = re.findall(CLEARED + f"{line}[^\n]*\r\n", beside)
            self.assertGreaterEqual(len(whole), 1, shown)
            self.assertEqual(len(whole), len(re.findall(line, beside)), shown)
        self.assertEqual(len(re.findall(BAR + r"[^\n\x1b]*(printed|complained|raised)", shown)), 0, shown)
        self.assertEqual(re.findall(r"grpo  (\d)/4  reward [^\n\x1b]*\r\n", shown), ["1", "3", "4"], shown)
        log = (root / "run/logs/rank-0.log").read_text()
        for line in lines:
            self.assertRegex(log, re.compile("^" + line, re.MULTILINE))


if __name__ == "__main__":
    unittest.main()
