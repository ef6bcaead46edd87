"""The tutorials of docs/start do what they say: their blocks run in order, in one new directory, as a reader would. The
runs that they leave hold what docs/run-directory.md names, and the configs of docs/how-to can be checked on them.

A fenced block with `title=NAME` is written to that file. A ```bash block runs. A ```text block is the standard output
of the commands before it: `…` stands for anything within a line, and a line `…` alone for any number of lines.
Other blocks are for the reader alone.
"""
import json
import pathlib
import re
import shlex
import tempfile
import unittest

from pages import DOCS, ROOT, Block, blocks_of, read, run

# Files that the configs of docs/how-to name -> what the tutorials leave.
STANDS_FOR = {"my-model": "runs/sft/model", "my-sft-model": "runs/sft/model", "my-teacher": "runs/sft/model",
              "prompts.jsonl": "{task}/problems.jsonl",
              "secrets.jsonl": "{task}/problems.jsonl", "number_game.py": f"{ROOT}/examples/number_game/number_game.py",
              "problems.jsonl": "{task}/problems.jsonl", "answers.jsonl": "{task}/demonstrations.jsonl"}
HELD_OUT = {"sft": "{task}/validation.jsonl", "distill": "{task}/validation.jsonl", "dpo": "held_out_pairs.jsonl",
            "reward": "held_out_pairs.jsonl", "kto": "held_out_marked.jsonl",
            "process_reward": "held_out_steps.jsonl", "grpo": "{task}/held_out.jsonl",
            "ppo": "{task}/held_out.jsonl"}
TASK = "runs/quickstart/task"
# One iteration of each recipe that no tutorial runs, with what makes more kinds of metrics.
MORE_RUNS = """
collimate train reward.yaml --set run.iterations=1
collimate train kto.yaml --set run.iterations=1
collimate train process_reward.yaml --set run.iterations=1
collimate train distill.yaml --set run.iterations=1
collimate train ppo.yaml --set run.iterations=1 run.epochs=null log.tensorboard=true
"""
REWARD = """recipe: reward
models: {policy: runs/sft/model}
data: {train: pairs.jsonl, eval: held_out_pairs.jsonl}
train: {samples_per_update: 32}
"""
KTO = """recipe: kto
models: {policy: runs/sft/model}
data: {train: marked.jsonl, eval: held_out_marked.jsonl}
train: {samples_per_update: 32}
"""
PROCESS_REWARD = """recipe: process_reward
models: {policy: runs/sft/model}
data: {train: steps.jsonl, eval: held_out_steps.jsonl, step_separator: "="}
train: {samples_per_update: 32}
"""
DISTILL = """recipe: distill
models: {policy: runs/sft/model, teacher: runs/lora/model}
data: {train: runs/quickstart/task/demonstrations.jsonl, eval: runs/quickstart/task/validation.jsonl, max_tokens: 64}
algorithm: {on_policy_share: 0.5}
rollout: {completion_tokens: 10}
"""
PPO = """recipe: ppo
models: {policy: runs/sft/model, reward: runs/reward/model}
data: {train: runs/quickstart/task/problems.jsonl, eval: runs/quickstart/task/held_out.jsonl}
rollout: {prompts_per_iteration: 8, samples_per_prompt: 2, prompt_tokens: 16, completion_tokens: 10, speculation: ngram}
train: {samples_per_update: 8}
evaluation: {examples: 10}
"""


def pattern_of(shown: str) -> str:
    """The regular expression that the output of a block has to match."""
    lines = [r"(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
             for line in shown.splitlines()]
    return "".join(lines)


class Format(unittest.TestCase):
    def test_what_a_block_matches(self):
        self.assertRegex("a 1\nb\n", rf"\A{pattern_of('a …' + chr(10) + 'b')}\Z")
        self.assertRegex("x\ny\nb\n", rf"\A{pattern_of('…' + chr(10) + 'b')}\Z")
        self.assertNotRegex("a 1\nc\n", rf"\A{pattern_of('a …' + chr(10) + 'b')}\Z")

    def test_the_blocks_of_a_page(self):
        page = "Text.\n```bash\nls\n```\n```yaml title=a.yaml\na: 1\n```\n"
        self.assertEqual(blocks_of(page), [Block("bash", "", "", "ls\n"), Block("yaml", "title", "a.yaml", "a: 1\n")])


def keys_of(value) -> set:
    """The keys of JSON at any depth. Those of a map whose keys are metrics, phases or names are not fields."""
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    if not isinstance(value, dict):
        return set()
    deeper = [inner for key, inner in value.items() if key not in ("phase_seconds", "event", "actions", "options",
                                                                   "placement", "groups", "traceEvents")]
    return set(value).union(*map(keys_of, deeper))


def lines_of(path: pathlib.Path) -> list:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_marked(pairs: pathlib.Path, marked: pathlib.Path) -> None:
    """Writes one answer of each pair, in turn the chosen and the rejected one."""
    rows = [{"prompt": pair["prompt"], "completion": pair["rejected" if i % 2 else "chosen"], "label": i % 2 == 0}
            for i, pair in enumerate(lines_of(pairs))]
    marked.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_steps(pairs: pathlib.Path, steps: pathlib.Path) -> None:
    """Writes both answers of each pair as the steps of one, the first of which is right."""
    rows = [{"prompt": pair["prompt"], "completions": [pair["chosen"], pair["rejected"]], "labels": [True, False]}
            for pair in lines_of(pairs)]
    steps.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


class Tutorials(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="collimate-tutorials-")))
        cls.failures = {page.name: cls.follow(page) for page in sorted((DOCS / "start").glob("*.md"))}
        (cls.directory / "reward.yaml").write_text(REWARD)
        (cls.directory / "ppo.yaml").write_text(PPO)
        (cls.directory / "kto.yaml").write_text(KTO)
        (cls.directory / "process_reward.yaml").write_text(PROCESS_REWARD)
        (cls.directory / "distill.yaml").write_text(DISTILL)
        for part in ("", "held_out_"):
            write_marked(cls.directory / f"{part}pairs.jsonl", cls.directory / f"{part}marked.jsonl")
            write_steps(cls.directory / f"{part}pairs.jsonl", cls.directory / f"{part}steps.jsonl")
        run(MORE_RUNS, cls.directory)
        cls.page = read("run-directory.md")
        cls.named = set(re.findall(r"`([^`\n]+)`", cls.page))

    @classmethod
    def follow(cls, page: pathlib.Path) -> list:
        """Gives what is not as the page says."""
        output, failures = None, []
        for block in blocks_of(page.read_text(encoding="utf-8")):
            if block.attribute == "title":
                (cls.directory / block.value).write_text(block.text, encoding="utf-8")
            elif block.language == "bash":
                output = run(block.text, cls.directory)
            elif block.language == "text":
                if output is None or not re.fullmatch(pattern_of(block.text), output):
                    failures.append(f"it shows\n{block.text}and there was\n{output}")
                output = None
        return failures

    def test_each_works_as_written(self):
        self.assertEqual(len(self.failures), 4)
        for page, failures in self.failures.items():
            with self.subTest(page):
                self.assertEqual(failures, [], "".join(failures))

    def runs(self) -> list:
        names = ("sft", "grpo", "dpo", "lora", "reward", "kto", "process_reward", "distill", "ppo")
        return [self.directory / "runs" / name for name in names]

    def test_every_file_of_a_run_is_named(self):
        headings = [line.removeprefix("## ") for line in self.page.splitlines() if line.startswith("## ")]
        for directory in self.runs():
            for path in directory.iterdir():
                name = path.name + "/" * path.is_dir()
                self.assertTrue(any(known.startswith(name) for known in self.named), f"{path} is not named")
                if name != "run.lock":
                    self.assertTrue(any(h.startswith(name) for h in headings), f"{name} has no part of its own")

    def assert_named(self, fields: set, where: str):
        families = [("rewards/", "NAME", "/mean"), ("memory/peak_bytes/", "PHASE", "")]
        unnamed = [field for field in sorted(fields - self.named)
                   if not any(field.startswith(begin) and field.endswith(end) for begin, _, end in families)]
        self.assertEqual(unnamed, [], f"docs/run-directory.md does not name these fields of {where}")

    def test_every_field_of_a_run_is_named(self):
        for directory in self.runs():
            lines = lines_of(directory / "metrics.jsonl")
            self.assert_named(set().union(*lines), f"{directory}/metrics.jsonl")
            for name in ("summary.json", "trace.json"):
                self.assert_named(keys_of(json.loads((directory / name).read_text())), f"{directory}/{name}")
            inputs = json.loads((directory / "models.json").read_text())
            self.assert_named(keys_of(list(inputs.values())), f"{directory}/models.json")
            self.assert_named(keys_of(lines_of(directory / "events.jsonl")), f"{directory}/events.jsonl")
            plan = (directory / "plan.yaml").read_text()
            self.assert_named(set(re.findall(r"^(\w+):", plan, re.MULTILINE)), f"{directory}/plan.yaml")
            for path in directory.glob("samples/*.jsonl"):
                self.assert_named(keys_of(lines_of(path)), str(path))

    def test_configs_of_the_how_to_pages_are_accepted(self):
        count = 0
        for page in sorted((DOCS / "how-to").glob("*.md")):
            for block in blocks_of(page.read_text(encoding="utf-8")):
                if block.language == "yaml" and block.text.startswith("recipe:"):
                    with self.subTest(page.name):
                        self.check(block.text)
                        count += 1
        self.assertGreaterEqual(count, 8)

    def check(self, config: str):
        """collimate check accepts it, with lengths that suit the tutorials' model."""
        recipe = re.match(r"recipe: (\w+)", config)[1]
        for name, stands_for in STANDS_FOR.items():
            config = re.sub(rf"(?<![\w/-]){re.escape(name)}", stands_for.format(task=TASK), config)
        config = re.sub(r"(eval: )[\w.]+", rf"\1{HELD_OUT[recipe].format(task=TASK)}", config)
        (self.directory / "how-to.yaml").write_text(config, encoding="utf-8")
        sets = ["train.warmup_updates=0"]
        if recipe in ("grpo", "ppo"):
            sets += ["rollout.prompt_tokens=16", "rollout.completion_tokens=10"]
        if recipe == "process_reward":
            sets += ['data.step_separator="="']  # the tutorials' model has no line end
        if "on_policy_share" in config:
            sets += ["rollout.completion_tokens=10"]
        run(f"collimate check how-to.yaml --set {shlex.join(sets)}", self.directory)


if __name__ == "__main__":
    unittest.main()
