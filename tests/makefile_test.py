"""Tests the Makefile. Covers the number of parallel jobs, which files are rebuilt after an edit, and the help."""
import os
import re
import unittest

from programs import sample, start


def make(*words):
    """Runs make as a user would, without the settings of the make that runs these tests. Does not change stamp files."""
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
    def members(self, *settings):
        """Returns the sources of each bundle (a group of sources that are compiled together)."""
        made = make(*settings, "--eval=show: ; @printf '%s\\n' $(pairs)", "show")
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        bundles = {}
        for name, source in (line.split(":") for line in made.stdout.split()):
            bundles.setdefault(name, []).append(source)
        return bundles

    def built_by(self, target, *settings):
        """Returns the files that `make TARGET` would build from scratch, by kind of step: {"c++": {"….o", …}, …}."""
        made = make("-n", "V=", "B=build/not-there", "always=FORCE", "CUDA=/opt/cuda", "NCCL=", *settings, f"do-{target}")
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

    def test_a_changed_source_is_compiled_alone_and_leaves_the_other_bundles_as_they_are(self):
        before = self.members()
        bundle, (first, second, *_) = next((name, files) for name, files in before.items() if len(files) > 2)
        after = self.members(f"changed={first}")
        self.assertEqual(after.pop(bundle), before.pop(bundle)[1:])
        self.assertEqual(after, before)
        self.assertIn(f"{first.removesuffix('.cpp')}.o", self.built_by("tests", f"changed={first}")["c++"])
        self.assertNotIn(f"{second.removesuffix('.cpp')}.o", self.built_by("tests", f"changed={first}")["c++"])

    def test_a_bundle_has_sources_of_one_folder_or_those_with_parsers(self):
        for name, files in self.members("changed=").items():
            self.assertLessEqual(len(files), 12, name)
            folder = os.path.dirname(name)
            for file in files:
                self.assertIn(folder, (os.path.dirname(file), file.split("/")[0] + "/json"))

    def test_without_bundles_every_source_is_compiled_alone(self):
        alone = self.built_by("tests", "BUNDLES=")["c++"]
        self.assertFalse([file for file in alone if "bundle" in file or file.endswith(".gch")])
        self.assertIn("parallel/step/training.o", alone)


class Other(unittest.TestCase):
    def test_build_folders(self):
        for settings, folder in (([], "build"), (["MPICXX=mpicxx.mpich"], "build/mpich"),
                                 (["SANITIZE=address,undefined"], "build/address-undefined"),
                                 (["MPICXX=mpicxx.mpich", "SANITIZE=thread"], "build/mpich-thread"),
                                 (["MPICXX=/opt/mpi/bin/mpicxx"], "build/_opt_mpi_bin_mpicxx")):
            made = make(*settings, "--eval=show: ; @echo $B", "show")
            self.assertEqual((made.stdout, made.stderr), (f"{folder}\n", ""))

    def test_help_lists_targets_and_settings(self):
        said = make("help").stdout
        for line in ("make all         build the program and the library,", "make compile_commands.json ", "make help ",
                     "make NAME=value … sets\n  NP=8                 number of ranks", "\n  V=1   "):
            self.assertIn(line, said)
        self.assertFalse([line for line in said.splitlines() if "$" in line or "##" in line])


if __name__ == "__main__":
    unittest.main()
