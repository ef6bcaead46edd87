"""`collimate generate` alone: what --stats counts, --timeout, --speculation, and the error of int8 weights."""
import json
import shutil
import subprocess
import unittest

from serve_support import PATIENCE, PROGRAM, WithModel


class Generate(WithModel):
    def generate(self, *flags: str, code: int = 0):
        """(the JSON document, what was logged)"""
        done = subprocess.run([PROGRAM, "generate", self.model, "--prompt", "12:", "--seed", "1", *flags],
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout) if code == 0 else None, done.stderr

    def test_stats_stand_beside_the_completions(self):
        asked = ("--max-tokens", "10", "--ignore-eos", "true", "--n", "3")
        completions, _ = self.generate(*asked, "--json")
        document, _ = self.generate(*asked, "--stats")
        self.assertEqual(document["completions"], completions)
        self.assertNotIn("int8", document)
        engine = document["engine"]
        # Three samples of one prompt cost one prompt, and all run together from the first step on.
        self.assertEqual((engine["steps"], engine["rows"], engine["slots"]), (10, 30, 3))
        self.assertEqual((engine["prefill_tokens"], engine["shared_prompt_tokens"]), (3, 6))
        self.assertEqual((engine["queued_steps"], engine["utilisation"]), (0, 1))
        self.assertGreater(engine["cache_bytes"], 0)

    def test_a_timeout_ends_completions_with_what_they_have(self):
        made, _ = self.generate("--max-tokens", "60000", "--ignore-eos", "true", "--timeout", "0.2", "--json")
        self.assertEqual(made[0]["finish"], "timeout")
        count = len(made[0]["token_ids"])
        self.assertTrue(0 < count < 60000, count)
        whole, _ = self.generate("--max-tokens", str(min(count, 1000)), "--ignore-eos", "true", "--json")
        self.assertEqual(made[0]["token_ids"][:1000], whole[0]["token_ids"])
        self.assertIn("expected 0 to 1000000000, got -1", self.generate("--timeout", "-1", code=2)[1])

    def test_guesses_change_steps_alone(self):
        asked = ("--max-tokens", "60", "--ignore-eos", "true", "--n", "2", "--logprobs", "--stats")
        for bias, repeats in (("{5: 4}", False), ("{5: 100}", True)):  # drawn mostly, and always
            plain, _ = self.generate(*asked, "--logit-bias", bias)
            guessed, logged = self.generate(*asked, "--logit-bias", bias, "--speculation", "ngram")
            self.assertEqual(guessed["completions"], plain["completions"])
            self.assertEqual(plain["engine"]["proposed_tokens"], 0)
            accepted, proposed = guessed["engine"]["accepted_tokens"], guessed["engine"]["proposed_tokens"]
            self.assertTrue(0 < accepted <= proposed, (accepted, proposed))
            self.assertIn(f"speculation: {accepted} of {proposed} guessed tokens accepted", logged)
            if repeats:
                self.assertEqual([one["token_ids"] for one in plain["completions"]], [[5] * 60] * 2)
                self.assertLess(guessed["engine"]["steps"], plain["engine"]["steps"] / 4)
        self.assertIn("speculation", self.generate("--speculation", "bigram", code=2)[1])

    def test_beams(self):
        asked = ("--max-tokens", "9", "--json", "--logprobs")
        greedy, _ = self.generate(*asked, "--temperature", "0")
        best, _ = self.generate(*asked, "--num-beams", "5", "--n", "3", "--length-penalty", "0")
        scores = [one["score"] for one in best]
        self.assertEqual(scores, sorted(scores, reverse=True))
        for one in best:
            self.assertAlmostEqual(one["score"], sum(one["logprobs"]), 4)
        self.assertGreaterEqual(scores[0], sum(greedy[0]["logprobs"]) - 1e-5)
        data, made = self.root / "prompts.jsonl", self.root / "made.jsonl"
        data.write_text('{"prompt": "12:"}\n{"prompt": "3,4:"}\n')
        subprocess.run([PROGRAM, "generate", self.model, "--data", data, "--output", made, "--num-beams", "3", "--n",
                        "2", "--max-tokens", "9", "--early-stopping", "never"], check=True, timeout=PATIENCE)
        rows = [json.loads(line) for line in made.read_text().splitlines()]
        self.assertEqual([row["prompt"] for row in rows], ["12:", "12:", "3,4:", "3,4:"])
        self.assertTrue(all("score" in row for row in rows))
        formed, _ = self.generate(*asked, "--num-beams", "4", "--n", "4", "--regex", "[0-4]{2}:", "--stop", "3:",
                                  "--repetition-penalty", "1.3")
        for one in formed:
            self.assertRegex(one["completion"], "^([0-4][0124]:|[0-4])$")
            self.assertEqual(one["finish"], "stop")
        for wrong, said in ((("--num-beams", "4", "--temperature", "0.5"), "temperature"),
                            (("--num-beams", "4", "--n", "5"), "1 to 4"), (("--length-penalty", "2"), "num_beams"),
                            (("--num-beams", "2", "--early-stopping", "later"), "never"),
                            (("--num-beams", "2", "--speculation", "ngram"), "speculation")):
            self.assertIn(said, self.generate(*asked, *wrong, code=2)[1])

    def test_a_draft_of_the_model_itself_is_always_right(self):
        asked = ("--max-tokens", "60", "--ignore-eos", "true", "--n", "2", "--logprobs", "--stats")
        plain, _ = self.generate(*asked)
        drafted, logged = self.generate(*asked, "--speculation", "draft", "--draft-model", self.model)
        self.assertEqual(drafted["completions"], plain["completions"])
        counted = drafted["engine"]
        self.assertEqual(counted["accepted_tokens"], counted["proposed_tokens"])
        self.assertIn(f"speculation: {counted['accepted_tokens']} of", logged)
        self.assertLess(counted["steps"], plain["engine"]["steps"] / 4)

    def test_a_draft_that_does_not_fit_is_refused(self):
        said = self.generate("--speculation", "draft", code=2)[1]
        self.assertIn("[draft_model] expected the directory of a smaller model beside speculation draft, got none",
                      said)
        said = self.generate("--draft-model", self.model, code=2)[1]
        self.assertIn("[speculation] expected draft beside draft_model, got off", said)
        other = self.root / "other"
        shutil.copytree(self.model, other, dirs_exist_ok=True)
        (other / "tokenizer_config.json").write_text(json.dumps({"char_ords": [ord(c) for c in "0123456798,:"]}))
        said = self.generate("--speculation", "draft", "--draft-model", str(other), code=2)[1]
        self.assertIn('[draft_model, token 12] expected "8" as in the model, got "9"; try that of a model of the same '
                      "family", said)

    def refused(self, *flags) -> str:
        """The last line that was logged."""
        done = subprocess.run([PROGRAM, "generate", self.model, *flags], capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr.splitlines()[-1]

    def test_what_is_no_prompt_is_refused(self):
        text, lines = self.root / "f.txt", self.root / "f.jsonl"
        text.write_text("12:\n34:\n")
        lines.write_text('{"text": "12:"}\n{"text": "34:"}\n')
        for file in (text, lines):
            self.assertEqual(self.refused("--data", str(file)),
                             f"[{file}:1] expected a prompt to complete, got a column 'text' alone; try JSON lines "
                             '{"prompt": "..."}')
        lines.write_text('{"prompt": "12:"}\n{"messages": [{"role": "user", "content": "34:"}]}\n')
        self.assertIn(f"{lines}:2", self.refused("--data", str(lines)))
        turn = '{"role": "user", "content": "34:"}'
        lines.write_text(f'{{"messages": [{turn}, {turn}]}}\n')
        self.assertEqual(self.refused("--data", str(lines), "--max-tokens", "1"),
                         f"[{lines}:1] expected a chat template, which marks where a turn ends, got a model without "
                         "one (a base model); try --chat-template chatml, or plain to join turns with nothing between")
        self.assertIn("a base model", self.refused("--data", str(lines), "--output", str(self.root / "out.jsonl")))
        self.assertEqual(self.refused("--prompt", b"12:\xff"), "[--prompt] expected a text in UTF-8, got other bytes")
        self.assertIn("expected stop token ids in [0, ", self.refused("--prompt", "12:", "--stop-ids", "99999"))

    def test_output_that_does_not_arrive(self):
        for flags in ((), ("--json",)):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, "generate", self.model, "--prompt", "12:", "--max-tokens", "2", *flags],
                                      stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
            self.assertEqual(done.returncode, 1)
            self.assertIn("expected standard output that takes all that is printed", done.stderr)

    def test_int8_says_what_it_costs(self):
        document, logged = self.generate("--compute", "int8", "--stats")
        error = document["int8"]
        self.assertTrue(0 < error["weights_error"] <= error["weights_error_most"] < 0.02, error)
        self.assertIn("weight", error["weights_error_most_of"])
        self.assertEqual(error["log_prob_tokens"], 128)
        self.assertTrue(0 < error["log_prob_error_mean"] <= error["log_prob_error_max"] < 1, error)
        self.assertIn("of the linear weights' root mean square is rounded away", logged)
        mean, most = error["log_prob_error_mean"], error["log_prob_error_max"]
        self.assertIn(f"int8: log-probs of 128 tokens that float32 draws change by {mean:.4f} on average, at most "
                      f"{most:.4f}", logged)
        again, logged = self.generate("--compute", "int8", "--stats", "--measure-int8", "false")
        self.assertEqual(again["completions"], document["completions"])
        self.assertNotIn("log_prob_tokens", again["int8"])
        self.assertNotIn("float32 draws", logged)


if __name__ == "__main__":
    unittest.main()
