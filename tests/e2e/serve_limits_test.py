"""What `collimate serve` counts and limits: timeouts, use of batch and cache, prompts scored in pieces, int8."""
import json
import pathlib
import signal
import tempfile
import unittest

from serve_support import Server, events_of, make_model, post_bytes

PATH = "/v1/completions"
ENDLESS = {"prompt": "12:", "max_tokens": 60000, "ignore_eos": True}


class WithModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.root.cleanup)
        cls.model = make_model(pathlib.Path(cls.root.name) / "tiny", 65536)

    def start(self, *flags: str) -> Server:
        server = Server(self.model, "--cache-blocks", "5000", *flags)
        self.addCleanup(server.close, signal.SIGKILL)
        return server


class Timeout(WithModel):
    def test_it_ends_with_what_it_has(self):
        server = self.start()
        asked = {**ENDLESS, "seed": 3, "return_token_ids": True, "timeout": 0.2}
        answer = server.complete(**asked)
        choice = answer["choices"][0]
        self.assertEqual(choice["finish_reason"], "timeout")
        count = answer["usage"]["completion_tokens"]
        self.assertEqual(len(choice["token_ids"]), count)
        self.assertTrue(0 < count < 60000, count)
        # They are the first of those that it would have got.
        whole = server.complete(**{**asked, "timeout": 0, "max_tokens": min(count, 1000)})["choices"][0]["token_ids"]
        self.assertEqual(choice["token_ids"][:1000], whole)
        text = server.post(PATH, {**asked, "stream": True})[1]
        self.assertEqual(events_of(text)[-1]["choices"][0]["finish_reason"], "timeout")
        self.assertEqual(server.metric("collimate_completions_expired_total"), 2)
        self.assertEqual(server.metric("collimate_completions_finished_total"), 1)
        server.wait_for("collimate_cache_blocks_used", 0)

    def test_waiting_counts(self):
        server = self.start("--max-batch-sequences", "1", "--buffer-tokens", "100000", "--write-seconds", "600")
        with server.connect() as first:
            first.sendall(post_bytes(PATH, json.dumps({**ENDLESS, "seed": 5, "stream": True}).encode()))
            first.recv(100)
            answer = server.complete(prompt="12:", timeout=0.1)
            self.assertEqual((answer["choices"][0]["finish_reason"], answer["choices"][0]["text"]), ("timeout", ""))
            # The same draws have to wait for those that run: not even begun.
            status, answer = server.post(PATH, {"prompt": "12:", "seed": 5, "timeout": 0.1})
            self.assertEqual((status, answer["error"]["code"]), (504, "timeout"))


class Metrics(WithModel):
    def test_batch_and_cache(self):
        server = self.start("--max-batch-sequences", "1", "--buffer-tokens", "100000", "--write-seconds", "600")
        self.assertEqual(server.metric("collimate_cache_blocks"), 5000)
        self.assertGreater(server.metric("collimate_cache_bytes"), 5000 * 16)
        self.assertEqual(server.metric("collimate_engine_slots"), 1)
        with server.connect() as one, server.connect() as two:
            for connection in (one, two):
                connection.sendall(post_bytes(PATH, json.dumps({**ENDLESS, "stream": True}).encode()))
            server.wait_for("collimate_completions_waiting", 1)
            server.wait_for("collimate_completions_running", 1)
            self.assertGreater(server.metric("collimate_cache_used_ratio"), 0)
            self.assertLessEqual(server.metric("collimate_cache_used_ratio"), 1)
        server.wait_for("collimate_completions_in_flight", 0)
        server.wait_for("collimate_completions_running", 0)
        self.assertEqual(server.metric("collimate_completions_waiting"), 0)
        self.assertEqual(server.metric("collimate_engine_utilisation_ratio"), 1)
        self.assertEqual(server.metric("collimate_engine_queued_rows_total"),
                         server.metric("collimate_engine_queued_steps_total"))

    def test_time_between_tokens(self):
        server = self.start()
        name = "collimate_time_between_tokens_seconds"
        self.assertEqual(server.metric(f"{name}_count"), 0)
        server.complete(prompt="12:", n=3, max_tokens=8, ignore_eos=True)
        server.wait_for(f"{name}_count", 3 * 7)
        text = server.get("/metrics")[1]
        self.assertIn(f"# TYPE {name} histogram\n", text)
        self.assertIn(f'{name}_bucket{{le="+Inf"}} 21\n', text)
        self.assertGreater(server.metric(f"{name}_sum"), 0)


class Scoring(WithModel):
    def test_pieces_change_no_number(self):
        asked = {"prompt": ["0123456789" * 20, "7:"], "max_tokens": 3, "temperature": 0, "echo": True, "logprobs": 5}
        whole = self.start().complete(**asked)["choices"]
        self.assertEqual(len(whole[0]["logprobs"]["token_logprobs"]), 203)
        self.assertEqual(self.start("--max-batch-tokens", "7").complete(**asked)["choices"], whole)

    def test_an_empty_prompt_is_refused(self):
        status, answer = self.start().post(PATH, {"prompt": [[]], "max_tokens": 0, "echo": True, "logprobs": 0})
        self.assertEqual(status, 400, answer)


class Int8(WithModel):
    NAMES = ("collimate_int8_weights_error_ratio", "collimate_int8_log_prob_error_mean",
             "collimate_int8_log_prob_error_max")

    def test_its_error_is_a_metric(self):
        server = self.start("--compute", "int8")
        weights, mean, most = (server.metric(name) for name in self.NAMES)
        self.assertTrue(0 < weights < 0.02, weights)
        self.assertTrue(0 < mean <= most < 1, (mean, most))
        self.assertRegex(server.errors(), r"int8: log-probs of 128 tokens that float32 draws change by \d\.\d+ on")
        unmeasured = self.start("--compute", "int8", "--measure-int8", "false")
        self.assertGreater(unmeasured.metric(self.NAMES[0]), 0)
        self.assertNotIn("log_prob_error", unmeasured.get("/metrics")[1])
        asked = {"prompt": "12:", "max_tokens": 20, "seed": 1, "logprobs": 0}
        self.assertEqual(server.complete(**asked)["choices"], unmeasured.complete(**asked)["choices"])
        self.assertNotIn("collimate_int8", self.start().get("/metrics")[1])


if __name__ == "__main__":
    unittest.main()
