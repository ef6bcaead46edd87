"""These tests ask what `collimate serve` counts and limits: timeouts, batch and cache, choices, its address, prompts
scored in pieces, speculation, int8."""
import json
import socket
import subprocess
import unittest

from serve_support import PATIENCE, PROGRAM, Server, WithModel, events_of, post_bytes

PATH = "/v1/completions"
ENDLESS = {"prompt": "12:", "max_tokens": 60000, "ignore_eos": True}


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
        # The tokens are the first of those that it would have got.
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
            # Equal draws have to wait for those that run: not even begun.
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


class Speculation(WithModel):
    def test_guesses_change_steps_alone(self):
        plain, guessing = self.start(), self.start("--speculation", "ngram")
        for bias in (4, 100):
            asked = {"prompt": "12:", "max_tokens": 60, "ignore_eos": True, "seed": 3, "logprobs": 0,
                     "logit_bias": {"5": bias}}
            self.assertEqual(guessing.complete(**asked)["choices"], plain.complete(**asked)["choices"])
        accepted = guessing.metric("collimate_engine_accepted_tokens_total")
        self.assertTrue(0 < accepted <= guessing.metric("collimate_engine_proposed_tokens_total"), accepted)
        self.assertEqual(plain.metric("collimate_engine_proposed_tokens_total"), 0)
        self.assertLess(guessing.metric("collimate_engine_steps_total"), plain.metric("collimate_engine_steps_total"))


class Address(WithModel):
    def test_it_is_the_loopback_one_unless_told(self):
        server = self.start()
        with self.assertRaises(OSError):  # which everybody's address would take
            socket.create_connection(("127.0.0.2", server.port), timeout=10)
        self.assertNotIn("may be reached", server.errors())
        open_to_all = subprocess.Popen([PROGRAM, "serve", self.model, "--port", "0", "--host", "0.0.0.0",
                                        "--cache-blocks", "100"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True)
        self.addCleanup(open_to_all.wait)
        self.addCleanup(open_to_all.kill)
        self.assertRegex(open_to_all.stdout.readline(), r"^serving tiny on http://0\.0\.0\.0:\d+$")
        open_to_all.terminate()
        warned = open_to_all.communicate(timeout=PATIENCE)[1]
        self.assertIn("0.0.0.0 may be reached by others, and no --api-key-file is given", warned)
        self.assertEqual(open_to_all.returncode, 0)


class Choices(WithModel):
    def test_a_request_has_so_many(self):
        server = self.start("--max-choices", "3")
        asked = {"max_tokens": 1, "prompt": ["12:"] * 3}
        self.assertEqual(len(server.complete(**asked)["choices"]), 3)
        for more in ({"n": 2}, {"prompt": ["12:"] * 4}):
            status, answer = server.post(PATH, {**asked, **more})
            self.assertEqual((status, answer["error"]["param"]), (400, "n"))
            self.assertIn("at most 3 completions in a request", answer["error"]["message"])


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


class OwnSampling(WithModel):
    def test_generation_config_is_the_default_of_requests(self):
        file = self.model / "generation_config.json"
        file.write_text(json.dumps({"temperature": 0.7, "top_k": 1, "do_sample": True}))
        self.addCleanup(file.unlink)
        server = self.start()
        greedy = server.complete(prompt="12,34:", temperature=0, max_tokens=20)["choices"][0]["text"]
        self.assertEqual(server.complete(prompt="12,34:", max_tokens=20)["choices"][0]["text"], greedy)
        drawn = {"prompt": "12,34:", "max_tokens": 20, "seed": 3}
        named = server.complete(temperature=1, top_k=0, **drawn)["choices"][0]["text"]
        self.assertNotEqual(named, greedy)
        self.assertIn("tokens are drawn with temperature 0.7, top_k 1", server.errors())
        plain = self.start("--generation-config", "none")
        self.assertEqual(plain.complete(**drawn)["choices"][0]["text"], named)
        # what is scored and not drawn has the model's own log-probs
        scored = {"prompt": "12,34:", "max_tokens": 0, "echo": True, "logprobs": 0}
        log_probs = [one.complete(**scored)["choices"][0]["logprobs"] for one in (server, plain)]
        self.assertEqual(log_probs[0], log_probs[1])


if __name__ == "__main__":
    unittest.main()
