"""Packs the bundle of checks for GPU machines and runs it on the emulated GPU. Covers failing parts of the bundle, too
little time, and an old driver."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import alive
from programs import build, start, thorough


class GpuBundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = f"{cls.place.name}/bundle"
        packed = start(["experiments/gpu_bundle/pack.py", build, cls.folder])
        assert packed.returncode == 0, packed.stdout + packed.stderr
        cls.packed = packed.stdout

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def run_it(self, *flags, **environment):
        """Runs the bundle. Returns the exit code, and for each part of the bundle the result and the measured figure."""
        results = tempfile.mkdtemp(dir=self.place.name)
        ended = start([f"{self.folder}/run", "--results", results, *flags], folder=results, **environment)
        table = ended.stdout[ended.stdout.find("\npart "):]
        with open(f"{results}/table.txt") as file:
            self.assertEqual(table, file.read())
        return ended.returncode, {cells[0]: cells[1:3]
                                  for cells in (re.split(r" {2,}", line) for line in table.splitlines()[2:])}

    def test_the_bundle_is_small_enough_to_be_carried(self):
        self.assertLess(float(re.search(r": ([\d.]+) MiB", self.packed)[1]), 60)

    def test_a_part_that_fails_does_not_stop_the_next(self):
        parts = "environment,kernels,attention" + ",exact,nccl-2" * thorough
        code, rows = self.run_it("--emulated", "--only", parts, "--fail", "kernels")
        self.assertEqual(code, 1)
        self.assertEqual(rows["environment"][0], "held")
        self.assertEqual(rows["kernels"], ["FAILED", "on purpose (--fail)"])
        self.assertEqual(rows["attention"], ["cannot run", "no PyTorch that sees this device"])
        if not thorough:
            return
        self.assertEqual(rows["exact"][0], "held", rows)
        self.assertRegex(rows["exact"][1], r"^4 of 4 layouts; host = device: [0-9a-f]{16} and [0-9a-f]{16}$")
        self.assertEqual(rows["nccl-2"][0], "held", rows)
        self.assertRegex(rows["nccl-2"][1], r"^[1-9]\d* passed, 0 failed$")

    def test_what_ten_minutes_leave_out_is_said(self):
        code, rows = self.run_it("--emulated", "--only", "environment,kernels", "--minutes", "0.05")
        self.assertEqual(rows["kernels"][0], "left out")
        self.assertRegex(rows["kernels"][1], r"s were left, it takes \d+ or more")

    def test_the_sanitizer_gets_tests_of_kernels(self):
        """Replaces the sanitizer by a program that lists and counts the tests instead of running them."""
        with tempfile.TemporaryDirectory() as programs:
            with open(f"{programs}/compute-sanitizer", "w") as file:
                file.write('#!/bin/sh\nshift 2\ncount=$("$@" --list-tests | grep -c "^  device: ")\n'
                           'echo "========= ERROR SUMMARY: 0 errors"\necho "$count passed, 0 failed"\n')
            os.chmod(f"{programs}/compute-sanitizer", 0o755)
            code, rows = self.run_it("--emulated", "--only", "sanitizer", PATH=f"{programs}:{os.environ['PATH']}")
        self.assertEqual(rows["sanitizer"][0], "held", rows)
        self.assertRegex(rows["sanitizer"][1], r"^0 errors in ([89]|\d\d) tests$")

    def test_an_ended_run_leaves_no_program_behind(self):
        results = tempfile.mkdtemp(dir=self.place.name)
        run = alive.spawn([f"{self.folder}/run", "--emulated", "--only", "kernels", "--results", results],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        log = pathlib.Path(f"{results}/log.txt")
        program = alive.until(lambda: log.exists() and re.search(r"^\$ (\S*tests_run) ", log.read_text()), run)[1]
        running = lambda: subprocess.run(["pgrep", "-f", program], capture_output=True).returncode == 0
        alive.until(running, run)
        run.terminate()
        alive.finish(run)
        self.assertFalse(running(), program)

    def test_a_driver_that_is_too_old_is_named(self):
        with tempfile.TemporaryDirectory() as programs:
            with open(f"{programs}/nvidia-smi", "w") as file:
                file.write("#!/bin/sh\necho 535.183.01\n")
            os.chmod(f"{programs}/nvidia-smi", 0o755)
            code, rows = self.run_it(PATH=f"{programs}:{os.environ['PATH']}")
        why = "driver 535.183.01 is too old for CUDA 13: 580 or newer"
        self.assertEqual(code, 1)
        self.assertEqual(rows["environment"], ["FAILED", why])
        self.assertEqual({tuple(row) for name, row in rows.items() if name != "environment"}, {("cannot run", why)})

    def test_a_part_that_does_not_exist_is_refused(self):
        ended = start([f"{self.folder}/run", "--only", "kernel"])
        self.assertEqual(ended.returncode, 2)
        self.assertIn("no part is called kernel; there are environment, kernels", ended.stderr)


if __name__ == "__main__":
    unittest.main()
