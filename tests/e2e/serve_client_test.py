"""`collimate serve` through the official `openai` client: fields of sampling, echo, and what it raises."""
import unittest

from serve_support import Server, WithModel

try:
    import openai
except ImportError as missing:
    openai, why_not = None, f"{missing}; tools/setup.sh test installs it"

PROMPT = "12,34:"
MESSAGES = [{"role": "user", "content": PROMPT}]
OURS = {"ignore_eos": True, "return_token_ids": True}  # fields that OpenAI's interface does not have


def client_of(server: Server, key: str = "none"):
    return openai.OpenAI(base_url=server.url + "/v1", api_key=key, max_retries=0)


@unittest.skipIf(openai is None, "" if openai else why_not)
class Client(WithModel):
    def start(self, *flags: str):
        """A server and a client of it."""
        server = super().start(*flags)
        client = client_of(server)
        self.addCleanup(client.close)
        return server, client

    @staticmethod
    def ask(client, chat: bool, extra: dict = {}, **fields):
        """(text, token ids, finish reason) of a greedy answer."""
        fields = {"model": "tiny", "temperature": 0, "max_tokens": 40, "extra_body": {**OURS, **extra}, **fields}
        if chat:
            choice = client.chat.completions.create(messages=MESSAGES, **fields).choices[0]
            return choice.message.content, choice.model_extra["token_ids"], choice.finish_reason
        choice = client.completions.create(prompt=PROMPT, **fields).choices[0]
        return choice.text, choice.model_extra["token_ids"], choice.finish_reason

    def test_penalties_and_bias(self):
        _, client = self.start()
        for chat in (False, True):
            _, plain, reason = self.ask(client, chat)
            self.assertEqual((len(plain), reason), (40, "length"))
            for name in ("presence_penalty", "frequency_penalty"):
                _, penalised, _ = self.ask(client, chat, **{name: 2})
                self.assertGreater(len(set(penalised)), len(set(plain)), name)
                _, drawn_to, _ = self.ask(client, chat, **{name: -2})
                self.assertLess(len(set(drawn_to)), len(set(penalised)), name)
            self.assertEqual(self.ask(client, chat, logit_bias={"5": 100})[1], [5] * 40)

    def test_stop(self):
        _, client = self.start()
        for chat in (False, True):
            text, _, _ = self.ask(client, chat)
            self.assertGreater(len(text), 8)
            stop = text[4:7]
            cut, ids, reason = self.ask(client, chat, stop=[stop, "no such text"])
            self.assertEqual((cut, reason), (text[:text.index(stop)], "stop"))
            self.assertLess(len(ids), 40)
            self.assertEqual(self.ask(client, chat, stop=stop)[0], cut)
        chunks = client.completions.create(model="tiny", prompt=PROMPT, temperature=0, max_tokens=40, stop=stop,
                                           stream=True, extra_body=OURS)
        streamed = [chunk.choices[0] for chunk in chunks]
        self.assertEqual("".join(choice.text for choice in streamed), self.ask(client, False, stop=stop)[0])
        self.assertEqual(streamed[-1].finish_reason, "stop")

    def test_echo(self):
        _, client = self.start()
        alone = client.completions.create(model="tiny", prompt=PROMPT, echo=True, logprobs=1, max_tokens=0).choices[0]
        self.assertEqual(alone.text, PROMPT)
        places = alone.logprobs
        self.assertEqual("".join(places.tokens), PROMPT)
        self.assertEqual(places.text_offset, list(range(len(PROMPT))))
        self.assertIsNone(places.token_logprobs[0])
        self.assertTrue(all(log_prob < 0 for log_prob in places.token_logprobs[1:]))
        with_more = client.completions.create(model="tiny", prompt=[PROMPT, "7:"], echo=True, logprobs=0, max_tokens=5,
                                              temperature=0, n=1).choices
        self.assertEqual(with_more[0].text, PROMPT + self.ask(client, False, max_tokens=5)[0])
        self.assertEqual(with_more[0].logprobs.token_logprobs[:len(PROMPT)], places.token_logprobs)
        self.assertTrue(with_more[1].text.startswith("7:"))

    def test_a_timeout(self):
        server, client = self.start("--buffer-tokens", "100000")
        for chat in (False, True):
            text, ids, reason = self.ask(client, chat, {"timeout": 0.3}, max_tokens=60000)
            self.assertEqual(reason, "timeout")
            self.assertTrue(0 < len(ids) < 60000, len(ids))
            self.assertTrue(text)
        self.assertEqual(server.metric("collimate_completions_expired_total"), 2)
        server.wait_for("collimate_cache_blocks_used", 0)
        chunks = client.chat.completions.create(model="tiny", messages=MESSAGES, max_tokens=60000, stream=True,
                                                extra_body={**OURS, "timeout": 0.1})
        self.assertEqual([chunk.choices[0].finish_reason for chunk in chunks][-1], "timeout")

    def test_a_wrong_key(self):
        keys = self.root / "keys"
        keys.write_text("right\n")
        server = Server(self.model, "--api-key-file", str(keys), "--cache-blocks", "100")
        self.addCleanup(server.close)
        with client_of(server, "wrong") as client:
            for call in (client.models.list, lambda: self.ask(client, False), lambda: self.ask(client, True)):
                with self.assertRaises(openai.AuthenticationError) as caught:
                    call()
                self.assertEqual(caught.exception.code, "invalid_api_key")
        with client_of(server, "right") as client:
            self.assertEqual(len(self.ask(client, True)[1]), 40)

    def test_too_many_requests(self):
        server, client = self.start("--max-requests", "1", "--buffer-tokens", "100000")
        stream = client.completions.create(model="tiny", prompt=PROMPT, max_tokens=60000, stream=True, extra_body=OURS)
        next(stream)
        for chat in (False, True):
            with self.assertRaises(openai.RateLimitError) as caught:
                self.ask(client, chat)
            self.assertEqual(caught.exception.code, "rate_limit_exceeded")
            self.assertEqual(caught.exception.response.headers["Retry-After"], "1")
        stream.close()  # which cancels
        server.wait_for("collimate_completions_in_flight", 0)
        self.assertEqual(len(self.ask(client, True)[1]), 40)

    def test_what_else_it_raises(self):
        _, client = self.start("--max-body-bytes", "10000")
        with self.assertRaises(openai.APIStatusError) as caught:
            client.completions.create(model="tiny", prompt="1" * 20000)
        self.assertEqual(caught.exception.status_code, 413)
        for fields in ({"stop": [""]}, {"presence_penalty": 3}, {"logit_bias": {"5": 1000}}, {"top_p": 0}, {"n": 0}):
            for chat in (False, True):
                with self.assertRaises(openai.BadRequestError) as caught:
                    self.ask(client, chat, **fields)
                self.assertEqual(caught.exception.param, next(iter(fields)))
        for chat in (False, True):
            with self.assertRaises(openai.BadRequestError) as caught:
                self.ask(client, chat, {"timeout": -1})
            self.assertEqual(caught.exception.param, "timeout")


if __name__ == "__main__":
    unittest.main()
