"""Compares the predicted times of collectives with those of SimGrid. simgrid_graphs_test.cpp writes the messages of the
collectives and their predicted times, and tests/client/simgrid_player.cpp simulates the messages. With TABLE=yes, the test
prints all times, and also those of SimGrid if links have latencies."""
import os
import tempfile
import unittest

from programs import start, tests_run, works

compiler = os.environ.get("CXX", "g++")


@unittest.skipUnless(works("pkg-config", "simgrid"), "needs SimGrid (libsimgrid-dev)")
class SimGrid(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.player = os.path.join(cls.folder.name, "player")
        built = start([compiler, "-std=c++20", "-O1", "tests/client/simgrid_player.cpp", "-o", cls.player, "-lsimgrid"],
                      limit_seconds=300)
        written = start([tests_run, "[.simgrid]"], GRAPHS=cls.folder.name)
        for result in (built, written):
            if result.returncode:
                raise AssertionError(result.stdout + result.stderr)
        with open(os.path.join(cls.folder.name, "times")) as file:
            cls.cases = [line.rstrip().split(" ", 1) for line in file]

    def played(self, name, *words):
        result = start([self.player, os.path.join(self.folder.name, f"{name}.graph"), *words])
        self.assertEqual(result.returncode, 0, result.stderr)
        return float(result.stdout)

    def test_predicted_times_are_those_of_simgrid(self):
        self.assertEqual(len(self.cases), 26)
        self.assertTrue(any(" : 1" in name for _, name in self.cases))  # leaf switches
        for predicted, name in self.cases:
            with self.subTest(name):
                times = [self.played(name), *([self.played(name, "links")] if os.environ.get("TABLE") else [])]
                if len(times) > 1:
                    print(f"| {name} |", f"{1e6 * float(predicted):.2f} |",
                          *(f"{1e6 * time:.2f} | {100 * (float(predicted) / time - 1):.3f} |" for time in times))
                self.assertAlmostEqual(float(predicted) / times[0], 1, delta=0.001)


if __name__ == "__main__":
    unittest.main()
