"""Plugins of a config in this process: a flow in Python, and a shared library, whose functions are this module's."""
import pathlib
import tempfile
import unittest

from python_support import BIN, ROOT, config, problems, write_model

import collimate


class Plugins(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="collimate-plugins-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.model = write_model(self.directory / "start")

    def train(self, name: str, **overrides):
        return collimate.train(config(self.model), problems(40), output=self.directory / name,
                               overrides={"reward": [{"rule": "exact"}], **overrides})

    def weights(self, result) -> bytes:
        return (result.model / "model.safetensors").read_bytes()

    def test_a_flow_in_python_is_the_recipe(self):
        flow = self.train("flow", recipe="my_grpo", plugins=[str(ROOT / "examples/grpo_flow.py")])
        self.assertEqual(self.weights(flow), self.weights(self.train("recipe")))

    def test_a_shared_library_finds_this_modules_functions(self):
        library = str(BIN / "own_flow.so")
        result = self.train("library", recipe="novelty", plugins=[library])
        self.assertGreater(result.metrics[-1]["novelty/answers"], 0)
        processes = self.train("apart", recipe="novelty", plugins=[library], cluster="local-processes")
        self.assertEqual(self.weights(processes), self.weights(result))
        with self.assertRaisesRegex(collimate.InputError, "expected an option of recipe novelty, one of weight"):
            self.train("wrong", recipe="novelty", plugins=[library], **{"options.wieght": 1})

    def test_a_plugin_is_of_the_configs_that_name_it(self):
        self.train("named", recipe="my_grpo", plugins=[str(ROOT / "examples/grpo_flow.py")])
        other = self.train("other")
        self.assertNotIn("\nplugins:", (other.output / "config.resolved.yaml").read_text())


if __name__ == "__main__":
    unittest.main()
