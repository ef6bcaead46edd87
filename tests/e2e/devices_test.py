"""`generate`, `eval`, `serve` and `chat` on several devices: one device's answers, and failures that end the verb."""
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import time
import unittest

from serve_support import PATIENCE, PROGRAM, Server, WithModel

HOOKED = PROGRAM.with_name("collimate-hooked")
CHUNKS = ("--reduction-chunks", "2")
HEADS = "expected a tp that divides the model's 2 attention heads, got tp 4"
LAYOUTS = (("--devices", "2", "--tp", "2"), ("--devices", "2", "--pp", "2"), ("--devices", "2"),
           ("--devices", "4", "--tp", "2"), ("--devices", "4", "--tp", "2", "--pp", "2"), ("--devices", "3"))


def make_mixture(directory: pathlib.Path, tokenizer: pathlib.Path) -> pathlib.Path:
    """A random Mixtral of two blocks with four experts each, and the tokenizer of another model."""
    directory.mkdir()
    draw, hidden, inner = random.Random(1), 8, 8
    shapes = {"model.embed_tokens.weight": (16, hidden), "model.norm.weight": (hidden,), "lm_head.weight": (16, hidden)}
    for i in range(2):
        block = f"model.layers.{i}."
        shapes |= {f"{block}{name}_layernorm.weight": (hidden,) for name in ("input", "post_attention")}
        shapes |= {f"{block}self_attn.{name}_proj.weight": size for name, size in
                   {"q": (8, hidden), "k": (4, hidden), "v": (4, hidden), "o": (hidden, 8)}.items()}
        shapes[f"{block}block_sparse_moe.gate.weight"] = (4, hidden)
        for e in range(4):
            shapes |= {f"{block}block_sparse_moe.experts.{e}.{name}.weight": size for name, size in
                       {"w1": (inner, hidden), "w2": (hidden, inner), "w3": (inner, hidden)}.items()}
    header, data = {}, b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = struct.pack(f"<{count}f", *(draw.gauss(0, 0.5) for _ in range(count)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    head = json.dumps(header).encode()
    (directory / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)
    (directory / "config.json").write_text(json.dumps({
        "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "vocab_size": 16, "hidden_size": hidden,
        "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": inner,
        "num_local_experts": 4, "num_experts_per_tok": 2, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
        "rope_theta": 1e4, "hidden_act": "silu", "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2}))
    (directory / "tokenizer_config.json").write_text((tokenizer / "tokenizer_config.json").read_text())
    return directory


def children_of(process: int) -> list:
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(stat.parent.name))
        except OSError:
            pass  # it has ended meanwhile
    return found


class WithRows(WithModel):
    positions = 512

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.mixture = make_mixture(cls.root / "mixture", cls.model)
        cls.data = cls.root / "rows.jsonl"
        rows = ({"prompt": f"{i}:{'1' * (i % 4)}", "ground_truth": str(i % 10)} for i in range(7))
        cls.data.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run_verb(self, *words, code: int = 0, program=PROGRAM, **environment: str):
        done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE,
                              env=os.environ | environment)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout, done.stderr


class Generate(WithRows):
    def asked(self, model=None):
        return ("generate", model or self.model, "--data", self.data, "-n", "3", "--max-tokens", "12", "--seed", "1",
                "--ignore-eos", "true", "--top-logprobs", "2", *CHUNKS)

    def test_all_layouts_give_one_devices_answers(self):
        alone, _ = self.run_verb(*self.asked())
        self.assertEqual(len(json.loads(alone)), 21)
        for layout in LAYOUTS:
            self.assertEqual(self.run_verb(*self.asked(), *layout)[0], alone, layout)

    def test_searches_drafts_and_bf16(self):
        rows = ("generate", self.model, "--data", self.data, "--max-tokens", "12", "--logprobs", *CHUNKS)
        drawn = (*rows, "-n", "3", "--seed", "1", "--ignore-eos", "true")
        for asked in ((*rows, "-n", "2", "--num-beams", "3", "--early-stopping", "never"),
                      (*drawn, "--compute", "bfloat16"), (*drawn, "--speculation", "ngram", "--logit-bias", "{5: 4}"),
                      (*drawn, "--speculation", "draft", "--draft-model", self.model)):
            alone, _ = self.run_verb(*asked)
            for layout in (LAYOUTS[0], LAYOUTS[1], LAYOUTS[3]):
                self.assertEqual(self.run_verb(*asked, *layout)[0], alone, (asked, layout))

    def test_experts_are_shared(self):
        alone, _ = self.run_verb(*self.asked(self.mixture))
        for layout in (("--devices", "2", "--ep", "2"), ("--devices", "4", "--ep", "4"),
                       ("--devices", "4", "--ep", "2", "--tp", "2"), ("--devices", "4", "--ep", "2")):
            self.assertEqual(self.run_verb(*self.asked(self.mixture), *layout)[0], alone, layout)
        beams = ("generate", self.mixture, "--prompt", "1:", "--num-beams", "2", "--devices", "2", "--ep", "2")
        self.assertIn("[num_beams] expected 1 with ep", self.run_verb(*beams, code=2)[1])

    def test_a_file_goes_on_in_another_layout(self):
        whole, cut = self.root / "whole.jsonl", self.root / "cut.jsonl"
        asked = ("generate", self.model, "--data", self.data, "-n", "3", "--max-tokens", "12", "--seed", "1", *CHUNKS)
        self.run_verb(*asked, "--output", whole)
        self.run_verb(*asked, "--output", cut, "--devices", "4", "--tp", "2")
        self.assertEqual(cut.read_text(), whole.read_text())
        lines = whole.read_text().splitlines(keepends=True)
        cut.write_text("".join(lines[:8]))
        self.run_verb(*asked, "--output", cut, "--devices", "2")
        self.assertEqual(cut.read_text(), whole.read_text())
        refused = self.run_verb(*asked[:-2], "--output", cut, code=2)[1]
        self.assertIn("reduction_chunks", refused)

    def test_a_timeout_is_that_of_all(self):
        for layout in LAYOUTS[:2]:
            made = json.loads(self.run_verb("generate", self.model, "--prompt", "1:", "--max-tokens", "500", "--seed",
                                            "1", "--ignore-eos", "true", "--timeout", "0.02", "--json", *layout)[0])
            self.assertIn(made[0]["finish"], ("timeout", "length"))

    def test_what_does_not_fit_is_named(self):
        for flags, said in ((("--devices", "3", "--tp", "2"), "[tp] expected a divisor of the 3 devices, got 2; try "
                             "devices: 2"),
                            (("--devices", "4", "--tp", "4"), HEADS),
                            (("--devices", "3", "--pp", "3"), "a pp of at most the model's 2 blocks, got pp 3"),
                            (("--devices", "2", "--ep", "2"), "[ep] expected 1 of a model without experts, got 2")):
            refused = self.run_verb("generate", self.model, "--prompt", "1:", *flags, code=2)[1]
            self.assertIn(said, refused)
        refused = self.run_verb("generate", self.root / "none", "--prompt", "1:", *LAYOUTS[0], code=2)[1]
        self.assertIn("none", refused)

    def test_a_rank_that_fails_ends_all(self):
        for layout in (LAYOUTS[0], LAYOUTS[1], LAYOUTS[2]):
            made = self.root / f"full{layout[-2]}{len(layout)}.jsonl"
            _, errors = self.run_verb("generate", self.model, "--data", self.data, "-n", "3", "--max-tokens", "400",
                                      "--ignore-eos", "true", "--output", made, *layout, code=1, program=HOOKED,
                                      COLLIMATE_TEST_DISK_BYTES="4000")
            self.assertIn("No space left", errors.splitlines()[-1])


class Eval(WithRows):
    def evaluated(self, *flags, model=None):
        words = ("eval", model or self.model, "--data", self.data, "--seed", "1", *CHUNKS, "--json", *flags)
        document = json.loads(self.run_verb(*words)[0])
        for one in document["models"]:
            del one["seconds"]
        return document

    def test_all_layouts_give_one_devices_numbers(self):
        drawn = ("--reward", "exact", "-n", "4", "--temperature", "1", "--max-tokens", "8")
        alone = self.evaluated(*drawn)
        for layout in (*LAYOUTS[:3], (*LAYOUTS[4], "--cluster", "local-processes")):
            rows = [self.root / f"{name}.jsonl" for name in ("one", "other")]
            self.assertEqual(self.evaluated(*drawn, *layout, "--output", rows[1]), alone, layout)
            self.evaluated(*drawn, "--output", rows[0])
            self.assertEqual(rows[1].read_text(), rows[0].read_text())
        self.assertEqual(self.evaluated(*drawn, "--devices", "2", "--ep", "2", model=self.mixture),
                         self.evaluated(*drawn, model=self.mixture))

    def test_scores_too(self):
        texts = self.root / "texts.jsonl"
        texts.write_text("".join(f'{{"prompt": "{i}:", "completion": "{i}{i + 1},{i * 37}"}}\n' for i in range(9)))
        words = ("eval", self.model, "--data", texts, *CHUNKS, "--json")
        documents = []
        for layout in ((), *LAYOUTS[:3], ("--devices", "2", "--cp", "2"),
                       ("--devices", "2", "--cp", "2", "--cp-kind", "ulysses"), ("--devices", "2", "--zero", "3"),
                       ("--devices", "2", "--tp", "2", "--cluster", "local-processes")):
            documents.append(json.loads(self.run_verb(*words, *layout)[0]))
            del documents[-1]["models"][0]["seconds"]
            self.assertEqual(documents[-1], documents[0], layout)

    def test_what_does_not_fit_is_named(self):
        words = ("eval", self.model, "--data", self.data, "--reward", "exact")
        for flags, said in ((("--devices", "3", "--pp", "2"), "[pp] expected a divisor of the 3 devices"),
                            (("--devices", "4", "--tp", "4"), HEADS), (("--zero", "1"), "0 or 3"),
                            (("--devices", "2", "--ep", "2"), "[ep] expected 1")):
            self.assertIn(said, self.run_verb(*words, *flags, code=2)[1])

    def test_a_process_that_dies_ends_the_verb(self):
        words = [PROGRAM, "eval", self.model, "--data", self.data, "--reward", "exact", "-n", "64", "--temperature",
                 "1", "--max-tokens", "450", "--ignore-eos", "true", "--devices", "2", "--tp", "2", "--cluster",
                 "local-processes"]
        verb = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)
        self.addCleanup(verb.kill)
        deadline, children = time.monotonic() + PATIENCE, []
        while len(children) < 2 and verb.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
            children = children_of(verb.pid)
        os.kill(children[0], signal.SIGKILL)
        _, errors = verb.communicate(timeout=PATIENCE)
        self.assertEqual(verb.returncode, 1, errors)
        self.assertIn("[worker 0] the worker process ended with signal 9", errors)


class Serve(WithRows):
    def answers(self, *flags) -> list:
        server = self.start(*CHUNKS, *flags)
        asked = [{"prompt": ["1:", "2,3:"], "n": 2, "seed": 5, "temperature": 1, "max_tokens": 20, "logprobs": 2},
                 {"prompt": "12:", "echo": True, "logprobs": 2, "max_tokens": 4, "temperature": 0},
                 {"prompt": "4:", "max_tokens": 9, "temperature": 0.7, "seed": 1, "timeout": 100}]
        answers = [server.complete(**fields)["choices"] for fields in asked]
        status, refused = server.post("/v1/completions", {"prompt": "1" * 600, "max_tokens": 1})
        self.assertEqual(status, 400, refused)
        self.assertEqual(server.complete(prompt="1:", max_tokens=3, seed=2)["usage"]["completion_tokens"], 3)
        self.assertEqual(server.close(), 0, server.errors())
        return answers

    def test_all_layouts_give_one_devices_answers(self):
        alone = self.answers()
        for layout in (*LAYOUTS[:3], LAYOUTS[4]):
            self.assertEqual(self.answers(*layout), alone, layout)

    def test_experts_are_shared(self):
        self.model = self.mixture
        self.assertEqual(self.answers("--devices", "2", "--ep", "2"), self.answers())

    def test_chat_answers_as_on_one_device(self):
        words = ("chat", self.model, "--seed", "1", "--max-tokens", "12", "--chat-template", "plain", *CHUNKS)
        said = [subprocess.run([PROGRAM, *map(str, words), *layout], input="1:\n2:\n", capture_output=True, text=True,
                               timeout=PATIENCE, check=True).stdout for layout in ((), *LAYOUTS[:3])]
        self.assertEqual(said, said[:1] * 4)


if __name__ == "__main__":
    unittest.main()
