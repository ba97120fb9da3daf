"""Runs the tests in Python, which start our programs as a user would. The tests are in the files *_test.py of all folders.

   tests/outside.py [NAME…]      runs all tests, or the named tests: prove_test, prove_test.Prove, prove_test.Prove.test_…
   tests/outside.py --names      lists the tests, one per line
   tests/outside.py --portions   lists portions of the tests, one portion per line; each is for a separate process

All cases of a class with a setUpClass are in one portion. This program uses TEST_CASES and TEST_JOURNAL in the same way as
tests_run (tests/main.cpp).
"""
import glob
import itertools
import os
import sys
import time
import unittest

chosen, journal = (os.environ.pop(name, "")
                   for name in ("TEST_CASES", "TEST_JOURNAL"))  # hidden from the programs that a test starts
files = sorted(glob.glob("tests/**/*_test.py", recursive=True))
sys.path[:0] = ["tests", *sorted({os.path.dirname(file) for file in files})]
names = [os.path.splitext(os.path.basename(file))[0] for file in files]
assert len(set(names)) == len(names), "two test files have the same name"

import alive  # noqa: E402: found through sys.path
import programs  # noqa: E402


def computed():
    """Returns the CPU time in seconds of this program and of all its child processes that have ended."""
    return sum(os.times()[:4])


class Result(unittest.TextTestResult):
    """Writes the start and the outcome of each case to the journal. If a class's setUpClass fails, all cases of the class
    fail."""

    def startTest(self, test):
        self.began, self.computed = time.monotonic(), computed()
        self.bad, self.skips = len(self.failures) + len(self.errors), len(self.skipped)
        self.note(f"begin {test.id()}")
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        ok, ran = len(self.failures) + len(self.errors) == self.bad, len(self.skipped) == self.skips
        self.close("failed" if not ok else "passed" if ran else self.skip(self.skipped[-1][1]), test.id(),
                   time.monotonic() - self.began, computed() - self.computed)

    def addError(self, test, error):
        super().addError(test, error)
        self.close_class("failed", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.close_class(self.skip(reason), test)

    @staticmethod
    def skip(reason):
        return "left" if reason.startswith(programs.left_to_test_all) else "skipped"

    def close_class(self, outcome, test):
        """Writes an outcome for every case of a class whose setUpClass failed or was skipped. `test` is then a text such as
        "setUpClass (prove_test.Prove)"."""
        if isinstance(test, unittest.TestCase) or hasattr(test, "test_case"):
            return
        whole = test.id().partition("(")[2].rstrip(")")
        for case in [case for case in self.left if case.startswith(f"{whole}.")] or [test.id()]:
            self.close(outcome, case, 0, 0)

    def close(self, outcome, case, seconds, of_processors):
        self.left.discard(case)
        self.totals[outcome] = self.totals.get(outcome, 0) + 1
        self.note(f"end {outcome} {seconds:.3f} {of_processors:.3f} {case}")

    def note(self, line):
        if alive.journal:
            alive.journal.write(line + "\n")


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def portions(tests, most=5):
    for _, of_class in itertools.groupby(tests, type):
        of_class = list(of_class)
        whole = "setUpClass" in vars(type(of_class[0]))
        size = len(of_class) if whole else most
        yield from (of_class[first:first + size] for first in range(0, len(of_class), size))


if chosen:
    with open(chosen) as stream:
        wanted = stream.read().splitlines()
else:
    wanted = [word for word in sys.argv[1:] if not word.startswith("--")] or names
suite = unittest.defaultTestLoader.loadTestsFromNames(wanted)
tests = list(tests_of(suite))
if "--names" in sys.argv or "--portions" in sys.argv:
    parts = portions(tests) if "--portions" in sys.argv else ([test] for test in tests)
    print("\n".join(" ".join(test.id() for test in part) for part in parts))
    sys.exit(0)
if journal:
    alive.journal = open(journal, "a", buffering=1)
Result.left, Result.totals = {test.id() for test in tests}, {}
unittest.TextTestRunner(verbosity=2, resultclass=Result).run(suite)
print(f"{Result.totals.get('passed', 0)} passed, {Result.totals.get('failed', 0)} failed", flush=True)
sys.exit(1 if Result.totals.get("failed") else 0)
