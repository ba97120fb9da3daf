"""The runner, tested: what it makes of a launch that passes, fails, crashes, hangs or says nothing."""
import os
import sys
import unittest

import run


class Runner(unittest.TestCase):
    def test_what_a_launch_says_is_counted(self):
        self.assertEqual(run.count("noise\n12 passed, 0 failed\n", 0, 9), (12, 0, ""))
        self.assertEqual(run.count("99 passed, 0 failed\n11 passed, 1 failed\n", 1, 9), (11, 1, "exit code 1"))

    def test_trouble_is_a_failure_whatever_was_said(self):
        self.assertEqual(run.count("12 passed, 0 failed\n", -11, 9), (12, 1, "exit code -11"))
        self.assertEqual(run.count("", 0, 9), (0, 1, "no test ran"))
        self.assertEqual(run.count("0 passed, 0 failed\n", 0, 9), (0, 1, "no test ran"))
        self.assertEqual(run.count("3 passed, 0 failed\n", None, 9), (3, 1, "not finished after 9 s"))

    def test_a_launch_that_hangs_is_ended(self):
        good, bad = run.run("(a hang, on purpose)", [sys.executable, "-c", "import time; time.sleep(99)"], 0.5, os.environ)
        self.assertEqual((good, bad), (0, 1))


if __name__ == "__main__":
    unittest.main()
