"""tools/unreached.py finds this without objects."""
import collections
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
                mock.patch.object(unreached, "called", lambda: collections.defaultdict(lambda: 9)), \
                mock.patch.object(unreached, "words", lambda: {"idle": said, "is_steady": said, "_load": said}):
            return [failure.message.split(":")[0] for failure in unreached.check_names()]

    def test_what_nothing_says_again(self):
        self.assertEqual(self.names(1, "int idle(int x);"), ["idle"])
        self.assertEqual(self.names(2, "int idle(int x);"), [])
        for line in ("  bool idle() const override;", "  static constexpr bool is_steady = true;", "  _load(1);"):
            self.assertEqual(self.names(1, line), [], line)

    def test_what_nothing_calls(self):
        """Other things may have its name."""
        def found(*lines: str) -> list:
            with mock.patch.object(unreached, "files", lambda *_: ("collimate/text/a.h",)), \
                    mock.patch.object(unreached, "lines", lambda _: lines), \
                    mock.patch.object(unreached, "production", lambda: list(lines)), \
                    mock.patch.object(unreached, "words", lambda: collections.Counter(end_mark=3, S=3, Tokenizer=3)), \
                    mock.patch.object(unreached, "test_files", lambda _: set()):
                for kept in (unreached.called, unreached.types):
                    kept.cache_clear()
                self.addCleanup(unreached.called.cache_clear)
                self.addCleanup(unreached.types.cache_clear)
                return [failure.message for failure in unreached.check_names()]
        declared = "  std::optional<int32_t> end_mark() const { return info_.pad; }"
        self.assertEqual(found(declared, "int other = pads.end_mark;"), ["end_mark: nothing calls it"])
        for use in ("x = end_mark();", "call(end_mark);", "f = whole ? end_mark : eos_id;", "return end_mark;"):
            self.assertEqual(found(declared, use), [], use)
        self.assertEqual(found("void end_mark(int x);", "void A::end_mark(int x) {"), ["end_mark: nothing calls it"])
        self.assertEqual(found("class Tokenizer {", "  Tokenizer(int x);"), [], "a constructor")

    def test_headers_that_no_other_source_includes(self):
        sources = {"collimate/a/b.h": (), "collimate/a/b.cpp": ('#include "collimate/a/b.h"',),
                   "collimate/a/c.h": (), "collimate/a/c.cpp": ('#include "collimate/a/c.h"',),
                   "collimate/a/d.cpp": ('#include "collimate/a/c.h"',),
                   "collimate/a/d_test.cpp": ('#include "collimate/a/b.h"',)}
        with mock.patch.object(unreached, "files", lambda *_: tuple(sources)), \
                mock.patch.object(unreached, "lines", sources.get), \
                mock.patch.object(unreached, "test_files", lambda _: {"collimate/a/d_test.cpp"}):
            self.assertEqual([failure.path for failure in unreached.headers_of_one_source()], ["collimate/a/b.h"])

    def test_headers_of_tests_are_below_tests(self):
        with mock.patch.object(unreached, "test_files", lambda _: {"collimate/a/b.h", "tests/c.h", "collimate/a.cpp"}):
            self.assertEqual([failure.path for failure in unreached.headers_of_tests()], ["collimate/a/b.h"])
