#!/usr/bin/env python3
"""Runs one file of unittest cases and writes the XML of a gtest program: run_unittest.py FILE REPORT.xml [PATTERN].
With a pattern, as `Case.test_*`, it runs those tests alone."""
import importlib.util
import pathlib
import re
import sys
import time
import unittest
import xml.etree.ElementTree as ElementTree


class Recorder(unittest.TextTestResult):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.root = ElementTree.Element("testsuites")
        self.failed = set()  # by subtests, which unittest also reports as a success of the whole
        self.begin = time.monotonic()

    def startTest(self, test):
        super().startTest(test)
        self.begin = time.monotonic()

    def record(self, test, tag=None, text=""):
        kind, _, name = test.id().rpartition(".")
        case = ElementTree.SubElement(self.root, "testcase", classname=kind, name=name, status="run",
                                      time=f"{time.monotonic() - self.begin:.3f}")
        if tag:
            text = re.sub("[\x00-\x08\x0b-\x1f]", "?", text)  # which XML cannot hold
            ElementTree.SubElement(case, tag, message=text).text = text

    def addSuccess(self, test):
        super().addSuccess(test)
        if test.id() not in self.failed:
            self.record(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.record(test, "failure", self._exc_info_to_string(err, test))

    def addError(self, test, err):
        super().addError(test, err)
        self.record(test, "failure", self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.failed.add(test.id())
            self.record(subtest, "failure", self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.record(test, "skipped", reason)


def main() -> int:
    file, report = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"{file.stem}.{pattern}" for pattern in sys.argv[3:]] or None
    suite = loader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(resultclass=Recorder, verbosity=2).run(suite)
    ElementTree.ElementTree(result.root).write(report)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
