"""Plugins of a config in this process: a flow in Python, and a shared library, whose functions are this module's."""
import array
import pathlib
import tempfile
import unittest

from python_support import BIN, ROOT, config, problems, write_model

import collimate
from collimate.modules import Rows, encoded_columns


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

    def test_a_plugin_that_was_killed_starts_again(self):
        file = self.directory / "once.py"
        file.write_text("import os\nimport pathlib\nimport collimate\n\n@collimate.flow\ndef once(page, prompts):\n"
                        "    mark = pathlib.Path(__file__).with_name('mark')\n    if not mark.exists():\n"
                        "        mark.touch()\n        os._exit(3)\n"
                        "    page.generator('policy', weights='policy')('generat', prompts)\n")
        for error in ("the end of its process with exit code 3", "got \"generat\"; try \"generate\""):
            with self.assertRaisesRegex(collimate.InputError, error):
                self.train("once", recipe="once", plugins=[str(file)])


class Columns(unittest.TestCase):
    """The type of a column is that of its declaration, or of the rows, and not that of its numbers in one call."""

    def schema(self, values, rows=None, **declared):
        rows = rows or Rows({"rows": len(values), "columns": []}, [])
        return encoded_columns({name: values for name in declared}, rows,
                               {name: kind for name, kind in declared.items() if kind})[0]["columns"][0]["schema"]

    def test_numbers_are_floats_unless_declared(self):
        for values in ([1, 0], [0.5, 1], [True, 2]):
            self.assertEqual(self.schema(values, bonus="")["type"], "float32")
            self.assertEqual(self.schema(values, reward="")["type"], "float32")
        self.assertEqual(self.schema([1, 0], bonus="int64")["type"], "int64")
        self.assertEqual(self.schema([1, 0], finish="")["type"], "int32")
        self.assertEqual(self.schema([None, {"a": 1}], note="")["type"], "json")
        self.assertEqual(self.schema([[1], []], ids=""), {"name": "ids", "type": "int32", "inner": [], "ragged": True})
        self.assertEqual(self.schema([[], [1]], bonus="")["type"], "float32")

    def test_a_column_keeps_its_inner_shape(self):
        schema = {"name": "pairs", "type": "int16", "inner": [2], "ragged": True}
        frames = [array.array("h", range(6)).tobytes(), array.array("q", [0, 1, 3]).tobytes()]
        rows = Rows({"rows": 2, "columns": [{"schema": schema}]}, frames)
        header, made = encoded_columns({"pairs": rows["pairs"]}, rows, {})
        self.assertEqual(header["columns"][0]["schema"], schema)
        self.assertEqual(made, frames)

    def test_what_is_not_of_the_type_is_named(self):
        with self.assertRaisesRegex(ValueError, "column 'uid' is of int64"):
            self.schema([1.5, 2], uid="")
        with self.assertRaisesRegex(ValueError, "column 'ids' has 1 in row 1, expected a list of numbers"):
            self.schema([[1], 1], ids="")


if __name__ == "__main__":
    unittest.main()
