"""Each rank names itself as the root of the last broadcast, so no rank waits for another. The job must still fail."""
import unittest

from programs import backends, ranks, sample, tests_run


class Leaving(unittest.TestCase):
    def test_a_last_broadcast_from_different_roots_is_noticed(self):
        ways = [(backend, *way) for backend in backends() for way in ((2, ""), (3, ""), (3, "yes"))]
        for backend, count, group in sample(ways, 2):
            with self.subTest(backend=backend, ranks=count, group=group):
                result = ranks(count, tests_run, "[.last-broadcast]", TEST_BACKEND=backend, TEST_GROUP=group)
                self.assertNotEqual(result.returncode, 0, result.stdout + result.stderr)
                self.assertRegex(result.stderr,
                                 r"ranks of one group made different calls\n +rank \d called broadcast .*root \d")


if __name__ == "__main__":
    unittest.main()
