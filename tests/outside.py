"""Runs the tests that look at our programs from outside (*_test.py), as a user would, and closes like the other tests."""
import sys
import unittest

suite = unittest.TestSuite()
loader = unittest.TestLoader()
for folder in ("tests", "tests/base", "tests/record", "tests/experiments"):
    sys.path.insert(0, folder)
sys.path.insert(0, "tests")
for folder in ("tests", "tests/record", "tests/experiments"):
    suite.addTests(loader.discover(folder, pattern="*_test.py", top_level_dir=folder))
result = unittest.TextTestRunner(verbosity=2).run(suite)
bad = len(result.failures) + len(result.errors)
print(f"{result.testsRun - bad - len(result.skipped)} passed, {bad} failed", flush=True)
sys.exit(1 if bad else 0)
