"""Answers have to be what is asked: `serve` and `generate` with regular expressions and JSON schemas."""
import json
import re
import subprocess

from serve_support import PATIENCE, PROGRAM, WithModel, events_of

REGEX = "[0-4]{2,5}(?:,|:)"
NUMBER = {"type": "integer", "minimum": 10, "maximum": 99}


class Serve(WithModel):
    def test_answers_have_their_form(self):
        server = self.start()
        named = {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": NUMBER}}
        for asked, form in (({"guided_regex": REGEX}, REGEX), ({"structured_outputs": {"regex": REGEX}}, REGEX),
                            ({"structured_outputs": {"choice": ["12", "3:", "45,6"]}}, "12|3:|45,6"),
                            ({"guided_json": NUMBER}, "[1-9][0-9]"), ({"response_format": named}, "[1-9][0-9]")):
            for temperature in (0, 1):
                fields = {"prompt": "12:", "max_tokens": 40, "n": 8, "seed": 1, "temperature": temperature, **asked}
                choices = server.complete(**fields)["choices"]
                for choice in choices:
                    self.assertTrue(re.fullmatch(form, choice["text"]), (asked, choice["text"]))
                    self.assertEqual(choice["finish_reason"], "stop")
                if temperature:
                    self.assertGreater(len({choice["text"] for choice in choices}), 1)
        messages = [{"role": "user", "content": "12"}]
        status, answer = server.post("/v1/chat/completions", {"messages": messages, "response_format": named})
        self.assertEqual(status, 200)
        self.assertIn(json.loads(answer["choices"][0]["message"]["content"]), range(10, 100))

    def test_log_probs_are_the_models_own(self):
        server = self.start()
        asked = {"prompt": "12:", "max_tokens": 12, "logprobs": 1, "return_token_ids": True, "seed": 4}
        made = server.complete(**asked, guided_regex=REGEX)["choices"][0]
        text = "12:" + made["text"]
        scored = server.complete(**{**asked, "prompt": text, "max_tokens": 0}, echo=True)["choices"][0]
        drawn = made["logprobs"]["token_logprobs"][:len(made["text"])]
        self.assertEqual(scored["logprobs"]["token_logprobs"][3:], drawn)

    def test_a_stream_and_an_answer_that_is_cut(self):
        server = self.start()
        asked = {"prompt": "12:", "max_tokens": 40, "seed": 2, "guided_regex": REGEX}
        status, text = server.post("/v1/completions", {**asked, "stream": True})
        self.assertEqual(status, 200)
        streamed = "".join(event["choices"][0]["text"] for event in events_of(text))
        self.assertEqual(streamed, server.complete(**asked)["choices"][0]["text"])
        cut = server.complete(**{**asked, "max_tokens": 1})["choices"][0]
        self.assertEqual(cut["finish_reason"], "length")

    def test_what_cannot_be_followed_is_refused(self):
        server = self.start()
        for asked, said in (({"guided_json": {"type": "array", "uniqueItems": True}}, "uniqueItems"),
                            ({"guided_json": {"type": "object"}}, "no token of the vocabulary"),
                            ({"guided_regex": "(?=1)1"}, "look-around"),
                            ({"guided_regex": "1", "min_tokens": 2}, "min_tokens"),
                            ({"guided_regex": "1", "ignore_eos": True}, "ignore_eos"),
                            ({"response_format": {"type": "xml"}}, "json_schema")):
            status, answer = server.post("/v1/completions", {"prompt": "12:", **asked})
            self.assertEqual(status, 400, answer)
            self.assertIn(said, answer["error"]["message"])
        self.assertIn(server.complete(prompt="12:")["choices"][0]["finish_reason"], ("length", "stop"))  # it goes on


class Generate(WithModel):
    def generate(self, *flags: str, code: int = 0):
        done = subprocess.run([PROGRAM, "generate", self.model, "--prompt", "12:", "--seed", "1", "--max-tokens", "40",
                               "--json", "--logprobs", "--n", "6", *flags],
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout) if code == 0 else done.stderr

    def test_guesses_change_nothing(self):
        plain = self.generate("--regex", REGEX)
        for one in plain:
            self.assertTrue(re.fullmatch(REGEX, one["completion"]), one)
        self.assertEqual(self.generate("--regex", REGEX, "--speculation", "ngram"), plain)
        drafted = self.generate("--regex", REGEX, "--speculation", "draft", "--draft-model", str(self.model))
        self.assertEqual(drafted, plain)

    def test_a_schema_is_a_text_or_a_file(self):
        file = self.root / "schema.json"
        file.write_text(json.dumps(NUMBER))
        made = self.generate("--json-schema", str(file))
        self.assertEqual(self.generate("--json-schema", json.dumps(NUMBER)), made)
        for one in made:
            self.assertIn(json.loads(one["completion"]), range(10, 100))
        self.assertIn("none.json", self.generate("--json-schema", "none.json", code=2))
        self.assertIn("uniqueItems", self.generate("--json-schema", '{"type": "array", "uniqueItems": true}', code=2))
