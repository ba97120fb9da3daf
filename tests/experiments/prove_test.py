"""`chorale prove` from outside: the matrix, its record, how it exits, and that it finds a difference where there is one."""
import os
import tempfile
import unittest

import xarray

from programs import chorale, ranks, start


class Prove(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def prove(self, *words, code=0):
        result = ranks(4, chorale, "prove", "--steps", "2", "--run-dir", self.folder, *words)
        self.assertEqual(result.returncode, code, result.stderr + result.stdout)
        return result.stdout.splitlines()

    def test_a_sample_of_layouts_is_equal_and_recorded(self):
        words = ["dp2", "dp1.tp2.sp", "dp2.z3", "dp1.tp3", "dp2.tp2.z2.sp", "dp2.pp2.z1", "dp1.tp2.pp2", "dp1.pp4"]
        lines = self.prove("--layouts", ",".join(words))
        self.assertIn(f"{len(words)} of {len(words)} equal to one rank in 2 steps", lines[-1])
        run = os.path.join(self.folder, "latest", "run.h5")
        with xarray.open_dataset(run, group="cases") as cases:
            self.assertEqual(list(cases.layout.values), words)
            self.assertEqual(set(cases.verdict.values), {"equal"})
        with xarray.open_dataset(run, group="prove") as steps:
            self.assertEqual(steps.sizes["row"], 2 * len(words))
            self.assertTrue((steps.equal == 1).all())
            for step in (1, 2):
                self.assertEqual(len(set(steps.loss.values[steps.step.values == step])), 1)

    def test_what_must_not_matter_does_not(self):
        lines = self.prove("--layouts", "dp2.pp2.z1", "--vary", "schedule,bucket,recompute")
        rows = [line for line in lines if "dp2.pp2.z1" in line]
        self.assertGreater(len(rows), 8)
        self.assertTrue(all(row.endswith("equal") for row in rows), lines)

    def test_plain_sums_are_found_to_differ_and_named(self):
        lines = self.prove("--layouts", "dp4", "--numerics", "fast", code=3)
        row = next(line for line in lines if "dp4" in line)
        self.assertRegex(row, r"DIFFERS at step \d: .*; through (world|dp) all_reduce")
        self.assertIn("0 of 1 equal", lines[-1])

    def test_more_ranks_than_there_are_and_unknown_layouts_are_refused(self):
        for words, says in ((["--layouts", "dp8"], "there are too few ranks"), (["--layouts", "dq2"], "is no part of a layout")):
            result = start([chorale, "prove", "--run-dir", self.folder, *words])
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(says, result.stderr)


if __name__ == "__main__":
    unittest.main()
