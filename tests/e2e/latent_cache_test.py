"""collimate.generate and collimate.evaluate with a cache that keeps latents."""
import pathlib
import tempfile
import unittest

from python_support import config, problems, write_model

import collimate


def low(prompts, completions, ground_truth, **columns):
    return [float(c[:1] <= "4") + 0.25 * (len(c) % 3) for c in completions]


class Latents(unittest.TestCase):
    DEEPSEEK = {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "q_lora_rank": None,
                "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 16,
                "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
                "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "norm_topk_prob": True,
                "routed_scaling_factor": 1.0}

    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def trained(self, name: str, **others):
        """A model of that name after one iteration."""
        start = write_model(self.root / name, **others)
        return collimate.train(config(start, run={"iterations": 1}), problems(40), [low],
                               output=self.root / f"{name}-run").model

    @staticmethod
    def draw(model, **options):
        return collimate.generate(model, ["123=", "45="], n=3, max_tokens=6, temperature=1, logprobs=True, **options)

    @staticmethod
    def evaluate(model, **options):
        return collimate.evaluate(model, problems(8), low, n=4, temperature=1, max_tokens=6, **options)

    def test_both_caches_give_the_same(self):
        model = self.trained("latent", **self.DEEPSEEK)
        self.assertEqual(self.draw(model, latent_cache=True), self.draw(model))
        kept, plain = self.evaluate(model, latent_cache=True), self.evaluate(model)
        self.assertEqual(kept["models"][0]["metrics"], plain["models"][0]["metrics"])
        self.assertEqual((kept["settings"]["latent_cache"], plain["settings"]["latent_cache"]), (True, False))

    def test_other_models_are_refused(self):
        model = self.trained("plain")
        for verb in (self.draw, self.evaluate):
            with self.assertRaisesRegex(collimate.InputError, "latent_cache. expected a model with latent attention, "
                                                              "got llama"):
                verb(model, latent_cache=True)


if __name__ == "__main__":
    unittest.main()
