"""`collimate serve` as its users see it: curl, the official client, and plain requests."""
import json
import math
import pathlib
import signal
import subprocess
import tempfile
import threading
import unittest

from serve_support import PROGRAM, Server, WithModel, events_of, make_model

try:
    import openai
except ImportError as missing:
    openai, why_not = None, f"{missing}; tools/setup.sh test installs it"

PROMPT = "12,34:"


class WithServer(WithModel):
    flags: tuple = ()
    positions = 64

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Server(cls.model, *cls.flags)
        cls.addClassCleanup(cls.server.close)


class Interface(WithServer):
    def test_pages(self):
        self.assertEqual(self.server.get("/health"), (200, {"status": "ok"}))
        status, models = self.server.get("/v1/models")
        self.assertEqual((status, models["object"], models["data"][0]["id"]), (200, "list", "tiny"))
        self.assertEqual(models["data"][0]["max_model_len"], 64)
        self.assertEqual(self.server.get("/v1/models/tiny"), (200, models["data"][0]))
        status, error = self.server.get("/v1/models/other")
        self.assertEqual((status, error["error"]["code"]), (404, "model_not_found"))
        self.server.complete(prompt=PROMPT)
        status, text = self.server.get("/metrics")
        for name in ("collimate_completions_finished_total", "collimate_time_to_first_token_seconds_count",
                     'collimate_http_responses_total{endpoint="/v1/completions",status="200"}'):
            self.assertRegex(text, rf"(?m)^{name.replace('{', '.').replace('}', '.')} [1-9]")
        before = self.server.metric("collimate_time_to_first_token_seconds_count")
        self.server.complete(prompt=PROMPT, max_tokens=0, echo=True)  # has no first token
        self.assertEqual(self.server.metric("collimate_time_to_first_token_seconds_count"), before)
        self.assertEqual(self.server.get("/nowhere")[0], 404)
        self.assertEqual(self.server.get("/v1/completions")[0], 405)
        self.assertEqual(self.server.post("/health", {})[0], 405)

    def test_a_completion_is_what_generate_gives(self):
        done = subprocess.run([PROGRAM, "generate", self.model, "--prompt", PROMPT, "--temperature", "0",
                               "--max-tokens", "20", "--logprobs"], capture_output=True, text=True, check=True)
        alone = json.loads(done.stdout)[0]
        answer = self.server.complete(prompt=PROMPT, temperature=0, max_tokens=20, logprobs=0, return_token_ids=True)
        choice = answer["choices"][0]
        self.assertEqual(choice["text"], alone["completion"])
        self.assertEqual(choice["token_ids"], alone["token_ids"])
        self.assertEqual(choice["logprobs"]["token_logprobs"], alone["logprobs"])
        self.assertEqual(answer["usage"]["completion_tokens"], len(alone["token_ids"]))
        self.assertEqual(answer["usage"]["prompt_tokens"], len(PROMPT))

    def test_ids_and_text_are_the_same_prompt(self):
        asked = {"temperature": 0, "max_tokens": 8, "return_token_ids": True}
        by_text = self.server.complete(prompt=PROMPT, **asked)["choices"][0]
        by_ids = self.server.complete(prompt=by_text["prompt_token_ids"], **asked)["choices"][0]
        self.assertEqual(by_text, by_ids)
        self.assertEqual(len(by_text["prompt_token_ids"]), len(PROMPT))

    def test_a_stream_says_what_the_whole_says(self):
        asked = dict(prompt=[PROMPT, "7:"], n=2, seed=5, max_tokens=30, logprobs=3, echo=True, stop=["45"],
                     return_token_ids=True)
        whole = self.server.complete(**asked)
        status, text = self.server.post("/v1/completions",
                                        {**asked, "stream": True, "stream_options": {"include_usage": True}})
        self.assertEqual(status, 200)
        *chunks, last = events_of(text)
        self.assertEqual((last["choices"], last["usage"]), ([], whole["usage"]))
        for index, expected in enumerate(whole["choices"]):
            parts = [c for chunk in chunks for c in chunk["choices"] if c["index"] == index]
            self.assertEqual("".join(c["text"] for c in parts), expected["text"])
            self.assertEqual(sum((c.get("token_ids", []) for c in parts), []), expected["token_ids"])
            for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
                joined = sum((c["logprobs"][name] for c in parts), [])
                self.assertEqual(joined, expected["logprobs"][name])
            self.assertEqual([c["finish_reason"] for c in parts if c["finish_reason"]], [expected["finish_reason"]])

    def test_echoed_log_probs_are_those_of_the_draws(self):
        answer = self.server.complete(prompt=PROMPT, seed=3, max_tokens=20, logprobs=0, return_token_ids=True)
        drawn = answer["choices"][0]
        ids = drawn["prompt_token_ids"] + drawn["token_ids"]
        again = self.server.complete(prompt=ids, max_tokens=0, echo=True, logprobs=0)["choices"][0]["logprobs"]
        self.assertIsNone(again["token_logprobs"][0])
        self.assertEqual(again["token_logprobs"][len(PROMPT):], drawn["logprobs"]["token_logprobs"])

    def test_the_most_likely_tokens_of_a_chat(self):
        """All of a small vocabulary: their probabilities at the request's temperature sum to one, whatever is drawn
        from it."""
        messages = [{"role": "user", "content": PROMPT}]
        for sampling in ({"temperature": 2, "seed": 7}, {"temperature": 0}, {"top_k": 2, "seed": 1},
                         {"temperature": 0.5, "seed": 3, "logit_bias": {"5": 3}, "presence_penalty": 1}):
            asked = {"messages": messages, "max_tokens": 8, "ignore_eos": True, "logprobs": True, **sampling}
            status, answer = self.server.post("/v1/chat/completions", {**asked, "top_logprobs": 20})
            self.assertEqual(status, 200, answer)
            entries = answer["choices"][0]["logprobs"]["content"]
            self.assertEqual(len(entries), 8)
            for entry in entries:
                top = entry["top_logprobs"]
                self.assertEqual(len(top), 16)
                self.assertEqual(len({one["token"] for one in top}), 16)
                self.assertAlmostEqual(sum(math.exp(one["logprob"]) for one in top), 1, places=5)
                self.assertEqual([one["logprob"] for one in top],
                                 sorted((one["logprob"] for one in top), reverse=True))
                own = {name: entry[name] for name in ("token", "logprob", "bytes")}
                self.assertIn(own, top)
                if sampling == {"temperature": 0}:
                    self.assertEqual(top[0], own)
            # Fewer are the first of them; with 0 there are none, and the tokens are the same.
            for count in (0, 3):
                few = self.server.post("/v1/chat/completions", {**asked, "top_logprobs": count})[1]
                expected = [{**entry, "top_logprobs": entry["top_logprobs"][:count]} for entry in entries]
                self.assertEqual(few["choices"][0]["logprobs"]["content"], expected)

    def test_the_most_likely_tokens_of_a_completion(self):
        asked = dict(prompt=PROMPT, seed=3, temperature=1.5, max_tokens=20, ignore_eos=True, return_token_ids=True)
        drawn = self.server.complete(**asked, logprobs=5)["choices"][0]
        places = drawn["logprobs"]
        self.assertEqual(len(places["top_logprobs"]), 20)
        for token, log_prob, top in zip(places["tokens"], places["token_logprobs"], places["top_logprobs"]):
            self.assertEqual(top[token], log_prob)  # the drawn one is there too
            self.assertIn(len(top), (5, 6))
            self.assertEqual(list(top.values())[:5], sorted(list(top.values())[:5], reverse=True))
        # Scored as a prompt, in another batch: the same numbers.
        ids = drawn["prompt_token_ids"] + drawn["token_ids"]
        echoed = self.server.complete(prompt=ids, temperature=1.5, max_tokens=0, echo=True, logprobs=5)["choices"][0]
        again = echoed["logprobs"]["top_logprobs"]
        self.assertEqual(len(again), len(ids))
        self.assertIsNone(again[0])
        self.assertEqual(again[len(PROMPT):], places["top_logprobs"])
        for token, log_prob, top in list(zip(echoed["logprobs"]["tokens"], echoed["logprobs"]["token_logprobs"],
                                             again))[1:]:
            self.assertEqual(top[token], log_prob)
        self.assertIsNone(self.server.complete(**asked, logprobs=0)["choices"][0]["logprobs"]["top_logprobs"])

    def test_a_biased_draw_is_listed_behind_the_most_likely(self):
        asked = dict(prompt=PROMPT, temperature=0, max_tokens=1, ignore_eos=True, logprobs=5)
        plain = self.server.complete(**asked)["choices"][0]["logprobs"]["top_logprobs"][0]
        self.assertEqual(len(plain), 5)
        characters = "0123456789,:"
        other = next(character for character in characters if character not in plain)
        bias = {str(4 + characters.index(other)): 100}
        places = self.server.complete(**asked, logit_bias=bias)["choices"][0]["logprobs"]
        top = list(places["top_logprobs"][0].items())
        self.assertEqual(top[:5], list(plain.items()))  # of the model's own distribution
        self.assertEqual(top[5:], [(other, places["token_logprobs"][0])])
        self.assertLessEqual(top[5][1], top[4][1])

    def test_generate_reports_the_most_likely_tokens_too(self):
        done = subprocess.run([PROGRAM, "generate", self.model, "--prompt", PROMPT, "--temperature", "0",
                               "--max-tokens", "12", "--top-logprobs", "3"], capture_output=True, text=True, check=True)
        alone = json.loads(done.stdout)[0]
        served = self.server.complete(prompt=PROMPT, temperature=0, max_tokens=12, logprobs=3)["choices"][0]["logprobs"]
        self.assertEqual(alone["logprobs"], served["token_logprobs"])
        self.assertEqual([[one["logprob"] for one in top] for top in alone["top_logprobs"]],
                         [list(top.values()) for top in served["top_logprobs"]])
        self.assertEqual([top[0]["token_id"] for top in alone["top_logprobs"]], alone["token_ids"])
        done = subprocess.run([PROGRAM, "generate", self.model, "--prompt", PROMPT, "--top-logprobs", "21"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--top-logprobs", done.stderr)

    def test_a_seed_decides_alone(self):
        asked = dict(prompt=PROMPT, n=3, max_tokens=20, ignore_eos=True)
        answers = []
        ask = lambda: answers.append(self.server.complete(seed=11, **asked)["choices"])  # noqa: E731
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:  # at the same time
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(answers), 4)
        for answer in answers:
            self.assertEqual(answer, answers[0])
        self.assertEqual(len({choice["text"] for choice in answers[0]}), 3)
        self.assertNotEqual(self.server.complete(seed=12, **asked)["choices"], answers[0])
        self.assertNotEqual(self.server.complete(**asked)["choices"], self.server.complete(**asked)["choices"])

    def test_biased_and_penalised_logits(self):
        asked = dict(prompt=PROMPT, temperature=0, max_tokens=6, ignore_eos=True, return_token_ids=True)
        biased = self.server.complete(logit_bias={"5": 100}, **asked)["choices"][0]["token_ids"]
        self.assertEqual(biased, [5] * 6)
        once = self.server.complete(logit_bias={"5": 100}, repetition_penalty=1e4, **asked)["choices"][0]["token_ids"]
        self.assertLess(once.count(5), 6)

    def test_a_stop_string_cuts(self):
        asked = dict(prompt=PROMPT, seed=1, max_tokens=40, ignore_eos=True)
        text = self.server.complete(**asked)["choices"][0]["text"]
        stop = text[10:13]
        cut = self.server.complete(stop=[stop, "nothing"], **asked)
        self.assertEqual(cut["choices"][0]["text"], text[:text.index(stop)])
        self.assertEqual(cut["choices"][0]["finish_reason"], "stop")
        self.assertLess(cut["usage"]["completion_tokens"], 40)

    def test_what_is_not_offered_is_refused_by_name(self):
        for field, value in {"presence_penalty": 3, "logit_bias": {"5": 1000}, "best_of": 2, "suffix": "a",
                             "logprobs": 6, "temperature": -1, "n": 0, "max_tokns": 5, "prompt": [99]}.items():
            status, answer = self.server.post("/v1/completions", {"prompt": PROMPT, field: value})
            self.assertEqual(status, 400, field)
            if field != "prompt":  # which the engine refuses
                self.assertEqual(answer["error"]["param"], field)
        status, answer = self.server.post("/v1/completions", {"prompt": "1" * 64})
        self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"))

    def curl(self, *words: str) -> str:
        return subprocess.run(["curl", "-sS", "--max-time", "60", *words], capture_output=True, text=True,
                              check=True).stdout

    def test_curl(self):
        url = self.server.url + "/v1/completions"
        body = json.dumps({"prompt": PROMPT, "temperature": 0, "max_tokens": 10})
        expected = self.server.complete(**json.loads(body))["choices"]
        self.assertEqual(json.loads(self.curl(url, "-d", body))["choices"], expected)
        self.assertEqual(json.loads(self.curl(url, "--compressed", "-d", body))["choices"], expected)
        chunked = self.curl(url, "-H", "Transfer-Encoding: chunked", "-d", body)
        self.assertEqual(json.loads(chunked)["choices"], expected)
        streamed = {**json.loads(body), "stream": True}
        for version in ("--http1.1", "--http1.0"):
            chunks = events_of(self.curl(url, version, "-N", "-d", json.dumps(streamed)))
            self.assertEqual("".join(chunk["choices"][0]["text"] for chunk in chunks), expected[0]["text"])
        self.assertEqual(self.curl("-I", self.server.url + "/health").split()[1], "200")
        large = {**json.loads(body), "user": "x" * 2_000_000}  # curl asks first: Expect: 100-continue
        with tempfile.NamedTemporaryFile("w") as file:
            json.dump(large, file)
            file.flush()
            self.assertEqual(json.loads(self.curl(url, "-d", f"@{file.name}"))["choices"], expected)


@unittest.skipIf(openai is None, "" if openai else why_not)
class Client(WithServer):
    def setUp(self):
        self.client = openai.OpenAI(base_url=self.server.url + "/v1", api_key="none", max_retries=0)
        self.addCleanup(self.client.close)

    def test_completions(self):
        made = self.client.completions.create(model="tiny", prompt=PROMPT, n=2, max_tokens=12, seed=4, logprobs=0)
        self.assertEqual([choice.index for choice in made.choices], [0, 1])
        for choice in made.choices:
            self.assertIn(choice.finish_reason, ("length", "stop"))
            self.assertEqual(len(choice.logprobs.tokens), len(choice.logprobs.token_logprobs))
        streamed = {0: "", 1: ""}
        for chunk in self.client.completions.create(model="tiny", prompt=PROMPT, n=2, max_tokens=12, seed=4,
                                                    stream=True):
            for choice in chunk.choices:
                streamed[choice.index] += choice.text
        self.assertEqual(streamed, {choice.index: choice.text for choice in made.choices})

    def test_chat(self):
        messages = [{"role": "user", "content": PROMPT}]
        made = self.client.chat.completions.create(model="tiny", messages=messages, max_tokens=12, temperature=0,
                                                   logprobs=True, top_logprobs=1)
        answer = made.choices[0]
        self.assertEqual(answer.message.role, "assistant")
        entries = answer.logprobs.content
        shown = [entry.token for entry in entries if entry.token not in "SEPU"]
        self.assertEqual("".join(shown), answer.message.content)
        self.assertEqual([entry.top_logprobs[0].token for entry in entries], [entry.token for entry in entries])
        self.assertEqual(made.usage.completion_tokens, len(entries))
        with self.client.chat.completions.create(model="tiny", messages=messages, max_tokens=12, temperature=0,
                                                 stream=True, stream_options={"include_usage": True}) as stream:
            chunks = list(stream)
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in chunks[:-1]), answer.message.content)
        self.assertEqual(chunks[-1].usage, made.usage)
        # An answer that the client sends back has many fields that are null.
        again = messages + [answer.message.model_dump(), {"role": "user", "content": "1"}]
        with self.assertRaisesRegex(openai.BadRequestError, "a chat template, which marks where a turn ends"):
            self.client.chat.completions.create(model="tiny", messages=again, max_tokens=1)
        self.client.chat.completions.create(model="tiny", messages=messages)  # to the model's last position

    def test_top_log_probs(self):
        messages = [{"role": "user", "content": PROMPT}]
        asked = dict(model="tiny", messages=messages, max_tokens=6, temperature=1.3, seed=2, logprobs=True,
                     top_logprobs=4)
        entries = self.client.chat.completions.create(**asked).choices[0].logprobs.content
        self.assertTrue(entries)
        for entry in entries:
            self.assertEqual(len(entry.top_logprobs), 4)
            self.assertEqual(bytes(entry.top_logprobs[0].bytes).decode(), entry.top_logprobs[0].token)
            self.assertGreaterEqual(entry.top_logprobs[0].logprob, entry.logprob)
        with self.client.chat.completions.create(**asked, stream=True) as stream:
            streamed = [entry for chunk in stream for choice in chunk.choices if choice.logprobs
                        for entry in choice.logprobs.content]
        self.assertEqual(streamed, entries)
        made = self.client.completions.create(model="tiny", prompt=PROMPT, max_tokens=6, seed=2, logprobs=5, echo=True)
        places = made.choices[0].logprobs
        self.assertIsNone(places.top_logprobs[0])
        self.assertEqual(len(places.top_logprobs), len(places.tokens))
        for token, log_prob, top in list(zip(places.tokens, places.token_logprobs, places.top_logprobs))[1:]:
            self.assertEqual(top[token], log_prob)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.create(**{**asked, "top_logprobs": 21})
        self.assertEqual(caught.exception.param, "top_logprobs")

    def test_errors_are_the_clients_own(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.completions.create(model="gpt", prompt=PROMPT)
        self.assertEqual((caught.exception.code, caught.exception.param), ("model_not_found", "model"))
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "1"}],
                                                frequency_penalty=9)
        self.assertEqual(caught.exception.param, "frequency_penalty")
        self.assertEqual([model.id for model in self.client.models.list()], ["tiny"])
        self.assertEqual(self.client.models.retrieve("tiny").id, "tiny")


class Keys(unittest.TestCase):
    def test_a_key_opens(self):
        with tempfile.TemporaryDirectory() as root:
            model, keys = make_model(pathlib.Path(root) / "tiny"), pathlib.Path(root) / "keys"
            keys.write_text("# ours\n\n  first \nsecond\n")
            server = Server(model, "--api-key-file", str(keys), "--name", "mine")
            self.addCleanup(server.close)
            self.assertEqual(server.name, "mine")
            self.assertEqual(server.get("/health")[0], 200)
            for wrong in ({}, {"Authorization": "Bearer firs"}, {"Authorization": "Bearer # ours"},
                          {"Authorization": "first"}, {"Authorization": "Bearer "}):
                for path in ("/v1/models", "/metrics", "/nowhere"):
                    self.assertEqual(server.get(path, wrong)[0], 401)
                status, answer = server.post("/v1/completions", {"prompt": PROMPT}, wrong)
                self.assertEqual((status, answer["error"]["code"]), (401, "invalid_api_key"))
            for key in ("first", "second"):
                right = {"Authorization": f"Bearer {key}"}
                for scheme in ("Bearer", "bearer", "BEARER"):
                    self.assertEqual(server.get("/v1/models", {"Authorization": f"{scheme} {key}"})[0], 200)
                self.assertEqual(server.post("/v1/completions", {"prompt": PROMPT}, right)[0], 200)
            keys.write_text("# none\n")
            done = subprocess.run([PROGRAM, "serve", model, "--api-key-file", keys], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn("expected a file of keys", done.stderr)


class Start(WithServer):
    def refused(self, *words) -> str:
        done = subprocess.run([PROGRAM, "serve", *words], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    def test_what_is_wrong_is_said(self):
        self.assertIn("expected a free address", self.refused(self.model, "--port", str(self.server.port)))
        self.assertIn("expected a free address", self.refused(self.model, "--port", "0", "--host", "203.0.113.7"))
        self.assertIn("model directory", self.refused("/nowhere"))
        self.assertIn("port", self.refused(self.model, "--port", "70000"))

    def test_an_idle_server_ends_at_once_by_either_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = Server(self.model)
            with server.connect():  # an idle connection holds nothing up
                self.assertEqual(server.close(number), 0)


class SmallCache(WithServer):
    """Two blocks of 16 tokens, and a last token that is never run."""
    flags = ("--cache-blocks", "2", "--buffer-tokens", "16")
    positions = 4096

    def test_the_cache_limits_a_sequence(self):
        self.assertEqual(self.server.get("/v1/models")[1]["data"][0]["max_model_len"], 33)
        status, answer = self.server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "12:"}],
                                                                   "temperature": 0})
        self.assertEqual(status, 200, answer)
        self.assertEqual((answer["usage"]["total_tokens"], answer["choices"][0]["finish_reason"]), (33, "length"))
        again = self.server.complete(prompt=PROMPT, max_tokens=4000, temperature=0)
        self.assertEqual((again["usage"]["total_tokens"], again["choices"][0]["finish_reason"]), (33, "length"))
        status, answer = self.server.post("/v1/completions", {"prompt": "1" * 33})
        self.assertEqual((status, answer["error"]["code"]), (400, "context_length_exceeded"))
        self.assertIn("2 cache_blocks hold 33 of 4096 tokens", self.server.errors())


if __name__ == "__main__":
    unittest.main()
