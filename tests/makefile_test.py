"""Tests the Makefile. Covers the number of jobs with which a target builds. After an edit, no more than necessary may be
built."""
import os
import re
import unittest

from programs import sample, start


def make(*words):
    """Runs make as a user would, without the settings of the make that runs these tests. Does not touch stamp files."""
    return start(["make", "SETUP=", "always=", "steps=", *words], MAKEFLAGS="", MAKELEVEL="")


class Jobs(unittest.TestCase):
    # A test target that prints the number of jobs with which make builds its prerequisites.
    toy = ["worked=toy", r"""--eval=do-toy: ; @grep -oPm1 '(?<= )-j\d*(?= )' <<< " $$MAKEFLAGS " """, "toy"]

    def test_a_target_builds_with_as_many_jobs_as_asked_for(self):
        for asked, given in sample(((["-j2"], "-j2"), (["-j1"], "-j1"), (["-k", "-j2"], "-j2"),
                                    ([], "-j" + start(["nproc"]).stdout.strip()), (["-j", "3"], "-j3"), (["-j"], "-j")), 3):
            with self.subTest(asked=asked):
                made = make(*asked, *self.toy)
                self.assertEqual((made.returncode, made.stderr), (0, ""))  # make would warn of an unavailable jobserver
                self.assertEqual(made.stdout, f"{given}\n")


class AfterAnEdit(unittest.TestCase):
    def built_by(self, target):
        """Returns the files that `make TARGET` would build from scratch, by kind of step: {"c++": {"….o", …}, …}."""
        made = make("-n", "V=", "B=build/not-there", "always=FORCE", "CUDA=/opt/cuda", "NCCL=", f"do-{target}")
        self.assertEqual(made.returncode, 0, made.stderr)
        steps = {}
        for kind, what in re.findall(r"printf '%-5s %s\\n' {1,2}'(\S+)' '(\S+)'", made.stdout):
            steps.setdefault(kind, set()).add(what.removeprefix("build/not-there/"))
        return steps

    def test_the_program_alone_needs_no_kernels_library_or_tests(self):
        program, everything = self.built_by("program"), self.built_by("all")
        if not os.path.exists("/dev/nvidiactl"):
            self.assertEqual(program["link"], {"chorale"})
            self.assertNotIn("nvcc", program)
        self.assertEqual(everything["link"], {"chorale", "libchorale.so", "chorale_cuda.so"})
        self.assertIn("nvcc", everything)
        self.assertFalse([file for file in program["c++"] if "tests" in file])

    def test_the_tests_alone_need_no_kernels_or_library(self):
        tests = self.built_by("tests")
        self.assertEqual((tests["link"], "nvcc" in tests), ({"tests_run"}, False))


if __name__ == "__main__":
    unittest.main()
