"""tools/unreached.py finds this without objects."""
import pathlib
import sys
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import unreached  # noqa: E402


class Unreached(unittest.TestCase):
    def names(self, said: int, line: str) -> list:
        with mock.patch.object(unreached, "files", lambda *_: ("collimate/text/a.h",)), \
                mock.patch.object(unreached, "lines", lambda _: (line,)), \
                mock.patch.object(unreached, "test_files", lambda _: set()), \
                mock.patch.object(unreached, "words", lambda: {"idle": said, "is_steady": said, "_load": said}):
            return [failure.message.split(":")[0] for failure in unreached.check_names()]

    def test_what_nothing_says_again(self):
        self.assertEqual(self.names(1, "int idle(int x);"), ["idle"])
        self.assertEqual(self.names(2, "int idle(int x);"), [])
        for line in ("  bool idle() const override;", "  static constexpr bool is_steady = true;", "  _load(1);"):
            self.assertEqual(self.names(1, line), [], line)

    def test_headers_of_tests_are_below_tests(self):
        with mock.patch.object(unreached, "test_files", lambda _: {"collimate/a/b.h", "tests/c.h", "collimate/a.cpp"}):
            self.assertEqual([failure.path for failure in unreached.headers_of_tests()], ["collimate/a/b.h"])
