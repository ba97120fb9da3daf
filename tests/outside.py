"""Runs the tests that look at our programs from outside (*_test.py, in any folder), as a user would, and closes like the other tests."""
import glob
import os
import sys
import unittest

files = sorted(glob.glob("tests/**/*_test.py", recursive=True))
sys.path[:0] = ["tests", *sorted({os.path.dirname(file) for file in files})]
names = [os.path.splitext(os.path.basename(file))[0] for file in files]
assert len(set(names)) == len(names), "two test files have the same name"
result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromNames(names))

# A test with several failing subTests is one failed test; an error outside any test (an import, setUpClass) is one more.
bad = {getattr(test, "test_case", test).id() for test, _ in result.failures + result.errors}
outside = sum(not hasattr(getattr(test, "test_case", test), "_testMethodName") for test, _ in result.errors)
good = result.testsRun - len(result.skipped) - (len(bad) - outside)
print(f"{good} passed, {len(bad)} failed", flush=True)
sys.exit(1 if bad else 0)
