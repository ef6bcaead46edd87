"""The context that docker/Dockerfile builds in has every file that it copies."""
import fnmatch
import pathlib
import re
import unittest

DOCKER = pathlib.Path(__file__).resolve().parents[2] / "docker"


class Context(unittest.TestCase):
    def test_lets_every_copied_file_through(self):
        ignore = (DOCKER / "Dockerfile.dockerignore").read_text().split()
        self.assertEqual(ignore[0], "*", "only named files are in the context")
        copied = []
        for line in re.findall(r"^(?:COPY|ADD) (.*)$", (DOCKER / "Dockerfile").read_text(), re.MULTILINE):
            copied += [word for word in line.split()[:-1] if not word.startswith("--")]
        self.assertGreater(len(copied), 3)
        for source in copied:
            name = source.replace("*", "1.0")
            self.assertTrue(any(fnmatch.fnmatch(name, rule[1:]) for rule in ignore[1:]), f"{source} is left out")


if __name__ == "__main__":
    unittest.main()
