"""`collimate serve` and `generate` with a model of words: what of its pieces and bytes becomes text."""
import json
import subprocess
import unittest

from serve_support import PROGRAM, STORIES, Server, events_of


@unittest.skipUnless(STORIES.is_dir(), f"the model {STORIES} is not on this machine")
class Words(unittest.TestCase):
    """A model with a vocabulary of pieces and bytes."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server(STORIES)
        cls.addClassCleanup(cls.server.close)

    def test_a_story(self):
        asked = dict(prompt="Once upon a time", temperature=0, max_tokens=40)
        text = self.server.complete(**asked)["choices"][0]["text"]
        self.assertTrue(text.startswith(", there was a little girl named"), text)
        chunks = events_of(self.server.post("/v1/completions", {**asked, "stream": True})[1])
        self.assertEqual("".join(chunk["choices"][0]["text"] for chunk in chunks), text)
        echoed = self.server.complete(**asked, echo=True, logprobs=0)["choices"][0]
        self.assertEqual(echoed["text"], "Once upon a time" + text)
        self.check_places(echoed)
        alone = self.server.complete(prompt="", temperature=0, max_tokens=8, logprobs=0)["choices"][0]
        self.assertFalse(alone["text"].startswith(" "), alone)
        self.check_places(alone)

    def check_places(self, choice: dict):
        """Each token stands at its offset; the text's first one without the space in front of it."""
        for token, offset in zip(choice["logprobs"]["tokens"], choice["logprobs"]["text_offset"]):
            if not token.startswith("<"):
                shown = token.removeprefix(" ") if offset == 0 else token
                self.assertTrue(choice["text"][offset:].startswith(shown), (token, offset))

    def test_a_completion_continues_its_prompt(self):
        asked = dict(prompt="Once", temperature=0, max_tokens=4, logprobs=0)
        echoed = self.server.complete(**asked, echo=True)["choices"][0]
        self.assertEqual(echoed["text"], "Once upon a time,")
        self.assertEqual(echoed["logprobs"]["text_offset"], [0, 0, 4, 9, 11, 16])
        self.check_places(echoed)
        ids = self.server.complete(**asked, return_token_ids=True)["choices"][0]["prompt_token_ids"]
        for prompt in ("Once", ids):
            self.assertEqual(self.server.complete(**{**asked, "prompt": prompt})["choices"][0]["text"], " upon a time,")
            status, text = self.server.post("/v1/completions", {**asked, "prompt": prompt, "stream": True})
            self.assertEqual("".join(c["choices"][0]["text"] for c in events_of(text)), " upon a time,")
        made = subprocess.run([PROGRAM, "generate", STORIES, "--prompt", "Once", "--temperature", "0", "--max-tokens",
                               "4"], capture_output=True, text=True, check=True)
        self.assertEqual(made.stdout, " upon a time,\n")

    def test_a_stop_string_may_begin_with_the_first_space(self):
        choice = self.server.complete(prompt="Once", temperature=0, max_tokens=20, stop=" upon",
                                      return_token_ids=True)["choices"][0]
        self.assertEqual((choice["text"], choice["finish_reason"], len(choice["token_ids"])), ("", "stop", 1))
        done = subprocess.run([PROGRAM, "generate", STORIES, "--prompt", "Once", "--temperature", "0", "--json",
                               "--stop", " upon"], capture_output=True, text=True, check=True)
        made = json.loads(done.stdout)[0]
        self.assertEqual((made["completion"], made["finish"], len(made["token_ids"])), ("", "stop", 1))

    def test_streams_split_no_character(self):
        """Hot draws give many single bytes, few of which are characters."""
        asked = {"prompt": "Tim \u00e9", "temperature": 8, "max_tokens": 200, "seed": 9, "ignore_eos": True}
        whole = self.server.complete(**asked)["choices"][0]["text"]
        self.assertIn("\ufffd", whole)
        text = self.server.post("/v1/completions", {**asked, "stream": True})[1]
        self.assertEqual("".join(chunk["choices"][0]["text"] for chunk in events_of(text)), whole)


if __name__ == "__main__":
    unittest.main()
