"""These tests ask which samples the tables of bench/peers are of, what is aimed at and what its clients measure."""
import asyncio
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench/peers"
sys.path.insert(0, str(BENCH))
import compare
import inputs
import scoring
import server_load
import targets


class Runs(unittest.TestCase):
    def setUp(self):
        self.kept = compare.OUT, compare.RUN
        compare.OUT = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        old = {"part": "sft", "side": "ours fp32", "seconds": 9.0}  # as written before calls were told apart
        (compare.OUT / "results.jsonl").write_text(json.dumps(old) + "\n")
        for compare.RUN, seconds in (("yesterday", 5.0), ("today", 1.0), ("today", 2.0)):
            compare.record("sft", "ours fp32", {"seconds": seconds})

    def tearDown(self):
        compare.OUT, compare.RUN = self.kept

    def seconds(self, **how):
        return [s["seconds"] for s in compare.samples_of("sft", **how)["ours fp32"]]

    def test_this_call_unless_all_are_asked_for(self):
        self.assertEqual(self.seconds(), [1.0, 2.0])
        self.assertEqual(self.seconds(every=True), [9.0, 5.0, 1.0, 2.0])

    def test_the_table_says_how_many(self):
        for every, row in ((False, "| 1.500 | 1.000 .. 2.000 | 2 |"), (True, "| 3.500 | 1.000 .. 9.000 | 4 |")):
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown):
                compare.table("sft", every)
            self.assertIn("| ours fp32 " + row, shown.getvalue())

    def test_the_table_says_what_is_aimed_at(self):
        compare.record("sft", "TRL bf16", {"seconds": 3.0})
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            compare.table("sft", every=False)
        aim = targets.TRAINING["sft"]["TRL"][targets.COLUMN]
        self.assertIn(f"| TRL bf16 | 3.000 | 3.000 .. 3.000 | 1 | 2.00 | {aim:g} |", shown.getvalue())

    def test_the_better_dtype_of_each_side_counts_and_int8_does_not(self):
        sides = {"ours fp32": [10, 11, 12], "ours bf16": [30, 31, 32], "ours int8": [99, 99, 99],
                 "HF fp32": [5, 6, 7], "vLLM bf16": [14, 15, 16]}
        by_side = {side: [{"batch": 8, "tok_s": s} for s in speeds] for side, speeds in sides.items()}
        self.assertEqual(compare.ratio(by_side, {"batch": 8}), "2.07")
        by_side["vLLM bf16"][2]["tok_s"] = 30  # now the ranges overlap
        self.assertEqual(compare.ratio(by_side, {"batch": 8}), "tie (2.07)")
        self.assertEqual(compare.ratio(by_side, {"batch": 64}), "")

    def test_values_of_another_sequence_end_the_comparison(self):
        for side, values in (("HF fp32", [-1.0, -2.0]), ("ours fp32", [-1.0, -2.001]), ("ours bf16", [-1.05, -2.0])):
            scoring.values_file(side, "shared").write_bytes(scoring.array.array("f", values).tobytes())
        self.assertAlmostEqual(scoring.difference("ours bf16", "shared"), 0.05, places=6)
        with self.assertRaisesRegex(SystemExit, "ours fp32 and Hugging Face in fp32 differ by 0.00"):
            scoring.difference("ours fp32", "shared")
        scoring.values_file("ours bf16", "shared").write_bytes(b"")
        with self.assertRaisesRegex(SystemExit, "ours bf16 has 0 values, Hugging Face 2"):
            scoring.difference("ours bf16", "shared")


class Words(unittest.TestCase):
    def test_each_program_names_the_words_that_it_knows(self):
        for program, known in (("compare", "sft, dpo, "), ("decode", "260k, 15m, "), ("scoring", "15m, 110m, got"),
                               ("server", "load, start, got")):
            done = subprocess.run([sys.executable, f"{BENCH}/{program}.py", "--all", "nope"], capture_output=True,
                                  text=True)
            self.assertRegex(done.stderr, rf"^\[bench/peers\] expected .*{known}.*nope\n$", program)

    def test_words_and_flags_reach_the_program(self):
        with mock.patch.object(sys, "argv", ["decode.py", "15m", "--int8"]):
            compare.call_main(lambda *given: self.assertEqual(given, (["15m"], False, True)), ["15m"], [], ["--int8"])


class Inputs(unittest.TestCase):
    def test_each_part_has_a_config_and_a_model_of_its_size(self):
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            (directory / "weights").mkdir()
            (directory / "weights/model.safetensors").write_text("weights")
            inputs.write(directory, inputs.CONFIGS, lambda size: directory / "weights" if size == "110m" else None)
            self.assertIn("from_scratch: false", (directory / "grpo-110m.yaml").read_text())
            self.assertIn("from_scratch: true", (directory / "grpo-260k.yaml").read_text())
            self.assertEqual((directory / "model-110m/model.safetensors").read_text(), "weights")
            words = json.loads((directory / "model-260k/tokenizer_config.json").read_text())["char_ords"]
            self.assertEqual(len(words) + inputs.SPECIALS, 512)
            pair = json.loads((directory / "pairs.jsonl").read_text().splitlines()[0])
            self.assertEqual([len(pair[key]) for key in ("prompt", "chosen", "rejected")], [128, 383, 383])
            prompts = (directory / "prompts-260k.jsonl").read_text().splitlines()
            self.assertLessEqual({ord(c) for line in prompts for c in json.loads(line)["prompt"]}, set(words))


class FakeServer:
    """Answers each request with a stream of three pieces and closes the connection after two requests."""

    def __init__(self, status="200 OK", reason="length"):
        self.status, self.reason, self.prompts = status, reason, []

    async def serve(self, reader, writer):
        for _ in range(2):
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, asyncio.CancelledError):
                break  # the client has no more of them, or the test is over
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            self.prompts.append(json.loads(await reader.readexactly(length))["prompt"])
            writer.write(f"HTTP/1.1 {self.status}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            for piece in range(3):
                choice = {"text": "x", "finish_reason": self.reason if piece == 2 else None}
                self.chunk(writer, json.dumps({"choices": [choice]}))
                await writer.drain()
            self.chunk(writer, "[DONE]")
            writer.write(b"0\r\n\r\n")
        writer.close()

    def chunk(self, writer, event):
        data = f"data: {event}\n\n".encode()
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def load(self, clients, each):
        async def run():
            listening = await asyncio.start_server(self.serve, "127.0.0.1", 0)
            port = listening.sockets[0].getsockname()[1]
            bodies = [[{"prompt": f"{c} {i}"} for i in range(each)] for c in range(clients)]
            try:
                return await server_load.load({"port": port, "bodies": bodies, "tokens": 3})
            finally:
                listening.close()

        return asyncio.run(run())


class Clients(unittest.TestCase):
    def test_every_request_is_answered_over_connections_that_end(self):
        server = FakeServer()
        line = server.load(clients=2, each=3)
        self.assertEqual(sorted(server.prompts), [f"{c} {i}" for c in range(2) for i in range(3)])
        self.assertEqual((line["requests"], line["pieces"]), (6, 3))

    def test_times_are_those_at_which_an_event_had_arrived_whole(self):
        event = lambda text, reason: b"data: " + json.dumps(
            {"choices": [{"text": text, "finish_reason": reason}]}).encode() + b"\n\n"
        first, second, last = event("a", None), event("", None), event("b", "length")
        pieces = [(1.0, b"HTTP/1.1 200 OK\r\n\r\n" + first[:20]), (1.5, first[20:] + second), (1.75, last),
                  (3.0, b"data: [DONE]\n\n0\r\n\r\n")]
        self.assertEqual(server_load.text_times((0.5, pieces)), [1.5, 1.75])
        line = server_load.summary([(0.5, pieces)] * 4, wall=2.0, cpu=0.5, tokens=2)
        expected = {"requests": 4, "requests_s": 2.0, "tok_s": 4.0, "first_p50": 1.0, "between_p99": 0.25, "pieces": 2,
                    "client_cpu": 0.25}
        self.assertEqual({key: line[key] for key in expected}, expected)

    def test_a_refusal_and_a_completion_that_ends_early_are_errors(self):
        with self.assertRaisesRegex(ValueError, "the server answered b'HTTP/1.1 429"):
            FakeServer(status="429 Too Many Requests").load(1, 1)
        with self.assertRaisesRegex(ValueError, "ended by 'stop', not by its length"):
            FakeServer(reason="stop").load(1, 1)

    def test_percentiles(self):
        self.assertEqual([server_load.percentile(range(1, 201), share) for share in (50, 99)], [100, 198])
        self.assertEqual(server_load.percentile([7], 99), 7)


if __name__ == "__main__":
    unittest.main()
