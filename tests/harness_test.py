"""Tests the output of the harness when a test fails, hangs or crashes on one rank."""
import unittest

from programs import ranks, tests_run


class Harness(unittest.TestCase):
    def test_a_failure_on_rank_2_alone_fails_the_run_and_shows_its_message(self):
        result = ranks(4, tests_run, "[fails-on-rank-2]")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("0 passed, 1 failed", result.stdout)
        self.assertIn("FAILED on rank 2: fails on rank 2 alone", result.stdout)
        self.assertIn('[rank 2]   CHECK( (world().rank() != 2 && "a message from rank 2") )', result.stderr)
        self.assertNotIn("[rank 1]", result.stderr)

    def test_require_all_stops_every_rank_at_the_same_line(self):
        result = ranks(3, tests_run, "[fails-together]")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("0 passed, 1 failed", result.stdout)  # so no rank reached the std::abort after the REQUIRE_ALL
        self.assertIn("failed on rank 1", result.stdout)
        self.assertIn("[rank 1]   1 != 1", result.stderr)

    def test_a_rank_that_throws_leaves_the_next_case_in_step(self):
        result = ranks(3, tests_run, "[throws-then-passes]")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("1 passed, 1 failed", result.stdout)
        self.assertIn("failed on rank 1", result.stdout)
        self.assertIn("[rank 1]   out of luck", result.stderr)

    def test_a_hang_ends_and_names_the_rank(self):
        result = ranks(3, tests_run, "[hangs-on-rank-1]", TEST_LIMIT="2")
        self.assertNotEqual(result.returncode, 0)
        self.assertNotIn("1 passed, 0 failed", result.stdout)
        self.assertRegex(result.stderr, r"no sign of life .*test case: hangs on rank 1")

    def test_a_crash_shows_the_rank_and_the_signal(self):
        result = ranks(2, tests_run, "[crashes-on-rank-1]")
        self.assertNotEqual(result.returncode, 0)
        self.assertNotIn("1 passed, 0 failed", result.stdout)
        self.assertIn("[rank 1]   SIGSEGV", result.stderr)

    def test_the_exit_code_is_zero_when_all_pass(self):
        result = ranks(2, tests_run, "ranks know one another")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("1 passed, 0 failed", result.stdout)


if __name__ == "__main__":
    unittest.main()
