"""Pages of docs/ that repeat what the program says agree with it, and the rows of docs/how-to/data.md are read."""
import json
import pathlib
import shutil
import tempfile
import unittest

from pages import ROOT, blocks_of, read, run

TABLE = "<!-- collimate help other-names -->\n"
CONFIG = """recipe: {recipe}
models: {{policy: {{path: model, from_scratch: true, chat_template: chatml}}}}
data: {{train: rows.jsonl}}
"""
UPDATE = "train: {samples_per_update: 2}\n"
ROLLOUT = """reward: [{rule: exact}]
rollout: {prompts_per_iteration: 1, samples_per_prompt: 2, prompt_tokens: 60, completion_tokens: 4}
"""
SHAPE = {"model_type": "llama", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
         "num_key_value_heads": 2, "intermediate_size": 16, "max_position_embeddings": 128, "rms_norm_eps": 1e-5}


class Generated(unittest.TestCase):
    def test_the_reference(self):
        self.assertEqual(read("reference.md"), run("collimate help reference", ROOT),
                         "docs/reference.md is old; try: collimate help reference > docs/reference.md")

    def test_the_keys_of_other_programs(self):
        shown = read("how-to/coming-from.md").partition(TABLE)[2]
        self.assertEqual(shown, run("collimate help other-names", ROOT),
                         "the table that ends docs/how-to/coming-from.md is old: collimate help other-names prints it")


class Data(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="collimate-data-")))
        tokenizer = ROOT / "collimate/text/testdata/byte_level"
        shutil.copytree(tokenizer, self.directory / "model")
        vocabulary = json.loads((tokenizer / "tokenizer.json").read_text(encoding="utf-8"))
        ids = [*vocabulary["model"]["vocab"].values(), *(token["id"] for token in vocabulary["added_tokens"])]
        (self.directory / "model/config.json").write_text(json.dumps({**SHAPE, "vocab_size": max(ids) + 1}))

    def test_every_row_that_is_shown_is_read(self):
        rows = [block for block in blocks_of(read("how-to/data.md")) if block.attribute == "recipe"]
        self.assertEqual({block.value for block in rows}, {"sft", "dpo", "kto", "process_reward", "grpo"})
        for block in rows:
            with self.subTest(block.text):
                config = CONFIG.format(recipe=block.value) + (ROLLOUT if block.value == "grpo" else UPDATE)
                (self.directory / "run.yaml").write_text(config, encoding="utf-8")
                (self.directory / "rows.jsonl").write_text(block.text, encoding="utf-8")
                self.assertIn("data.train", run("collimate check run.yaml", self.directory))


if __name__ == "__main__":
    unittest.main()
