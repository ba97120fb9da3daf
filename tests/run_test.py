"""Tests the test runner (tests/run.py) with a stand-in for a test program. Each case's name makes the stand-in pass, fail,
crash, hang, skip the case, or exit with an error."""
import contextlib
import csv
import io
import os
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import run

program = """
import os, signal, sys, time
cases = os.environ["CASES"].split()
if "--names" in sys.argv:
    sys.exit(print("\\n".join(cases)))
wanted = open(os.environ["TEST_CASES"]).read().split()
journal = open(os.environ["TEST_JOURNAL"], "a", buffering=1)
for case in wanted:
    if case.startswith("unknown"):
        continue
    journal.write(f"begin {case}\\n")
    print(f"{case} speaks", flush=True)
    if case.startswith("crash"):
        os.kill(os.getpid(), signal.SIGSEGV)
    if case.startswith("hang"):
        time.sleep(1000)
    if case.startswith("slow"):
        for _ in range(8):
            time.sleep(0.25)
            journal.write("alive\\n")
    outcome = {"fail": "failed", "skip": "skipped", "left": "left"}.get(case.split("-")[0], "passed")
    journal.write(f"end {outcome} 0.5 0.25 {case}\\n")
sys.exit(3 if "bad-end" in wanted else 0)
"""


class Runner(unittest.TestCase):
    def run_cases(self, cases, portions=1, limit="60"):
        """Runs the cases. Returns their outcomes and the runner's output."""
        group = run.Group("a group", [sys.executable, "-c", program], {**os.environ, "CASES": cases, "TEST_LIMIT": limit},
                          portions=portions)
        runner, printed = run.Runner(), io.StringIO()
        with contextlib.redirect_stdout(printed):
            runner.add(group)
            runner.run()
        return {case: outcome for case, (outcome, *_) in group.results.items()}, printed.getvalue()

    def test_what_passes_fails_and_is_skipped_is_counted(self):
        results, printed = self.run_cases("pass-1 fail-1 skip-1 pass-2", portions=2)
        self.assertEqual(results, {"pass-1": "passed", "fail-1": "failed", "skip-1": "skipped", "pass-2": "passed"})
        self.assertRegex(printed, r"a group +2 passed +1 failed .* 1\.0 s computed  1 skipped")
        self.assertIn("fail-1 speaks", printed)

    def test_what_passes_says_nothing(self):
        self.assertNotIn("speaks", self.run_cases("pass-1 pass-2")[1])

    def test_a_crash_fails_one_case_and_the_others_run(self):
        results, printed = self.run_cases("pass-1 crash-1 pass-2 crash-2 crash-3 pass-3")
        self.assertEqual([case for case, outcome in results.items() if outcome == "passed"], ["pass-1", "pass-2", "pass-3"])
        self.assertEqual(len(results), 6)
        self.assertIn("crash-2: exit code -11", printed)

    def test_a_hang_fails_one_case_and_a_slow_one_that_moves_goes_on(self):
        results, printed = self.run_cases("slow-1 hang-1 pass-1", limit="0.1")
        self.assertEqual(results, {"slow-1": "passed", "hang-1": "failed", "pass-1": "passed"})
        self.assertIn("hang-1: no sign of life", printed)

    def test_a_case_that_did_not_run_has_failed(self):
        self.assertEqual(self.run_cases("pass-1 unknown-1 pass-2")[0],
                         {"pass-1": "passed", "pass-2": "passed", "unknown-1": "failed"})

    def test_a_program_that_ends_badly_or_names_no_case_has_failed(self):
        self.assertIn("failed", self.run_cases("pass-1 bad-end")[0].values())
        self.assertIn("failed", self.run_cases("")[0].values())

    def test_a_check_leaves_out_the_cases_that_were_slow_and_keeps_their_times(self):
        with tempfile.TemporaryDirectory() as folder:
            tests, times = os.path.join(folder, "tests_run"), os.path.join(folder, "test_times.csv")
            with open(tests, "w") as file:
                file.write(f"#!{sys.executable}\n{program}")
            os.chmod(tests, 0o755)

            def run_tests(quick):
                environment = {**os.environ, "CASES": "pass-1 fail-1", "TEST_QUICK": quick, "TEST_ALL": ""}
                done = subprocess.run([sys.executable, run.__file__, folder, "env", "thread"], env=environment,
                                      capture_output=True, text=True)
                return done.stdout.splitlines()[-2:], run.last_times(times)

            slow = {(group, "fail-1"): (3.0, 1.5) for group in ("a device, emulated", "one process and threads")}
            for quick, before in [("yes", {}), ("yes", slow), ("", slow)]:
                with open(times, "w", newline="") as file:
                    csv.writer(file).writerows([("seconds", "processor_seconds", "group", "case"),
                                                *((*took, *name) for name, took in before.items())])
                end, after = run_tests(quick)
                if quick and before:
                    self.assertEqual(end, ["2 cases that took more than a second of processor time are left to `make test`",
                                           "2 passed, 0 failed"])
                    self.assertLessEqual(slow.items(), after.items())
                else:
                    self.assertEqual(end[-1], "2 passed, 2 failed")
                    self.assertFalse(slow.items() & after.items())
                self.assertEqual(len(after), 4)

    def test_the_last_line_counts_and_the_slowest_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            tests = os.path.join(folder, "tests_run")
            with open(tests, "w") as file:
                file.write(f"#!{sys.executable}\n{program}")
            os.chmod(tests, 0o755)
            result = subprocess.run([sys.executable, run.__file__, folder, "env", "thread"],
                                    env={**os.environ, "CASES": "pass-1 fail-1 left-1"},
                                    capture_output=True, text=True)
            with open(os.path.join(folder, "test_times.csv"), newline="") as file:
                times = list(csv.DictReader(file))
        self.assertEqual(result.returncode, 1)
        self.assertEqual({row["case"]: (row["seconds"], row["processor_seconds"]) for row in times},
                         {"pass-1": ("0.5", "0.25"), "left-1": ("0.5", "0.25"), "fail-1": ("0.5", "0.0")})
        self.assertRegex(result.stdout, r"\nall tests took 0 min \d+ s on \d+ processors?\n")
        self.assertEqual(result.stdout.splitlines()[-2:],
                         ["2 cases are left to `make test-all`: git grep only_in_test_all tests", "2 passed, 2 failed"])
        self.assertRegex(result.stdout, r"(?s)the slowest cases; all are in \S+\n +0.5 s  \S+  \(.*\)\n")


class Groups(unittest.TestCase):
    def names(self, sanitizer="", build="build", **environment):
        with unittest.mock.patch.dict(os.environ, environment), contextlib.redirect_stdout(io.StringIO()):
            return {group.name: group for group in run.all_groups(build, ["mpirun"], sanitizer)}

    def test_test_all_adds_numbers_of_ranks_and_the_cases_with_sanitizers(self):
        usual, thorough = self.names(TEST_ALL=""), self.names(TEST_ALL="yes")
        self.assertEqual((usual["mpirun, 8 ranks"].program[1], thorough["mpirun, 8 ranks"].program[1]), ("[many]", "[spmd]"))
        self.assertEqual({name for name in thorough if "devices" in name} - set(usual),
                         {f"mpirun, {ranks} emulated devices" for ranks in (1, 4, 8)})
        self.assertFalse([name for name in usual if ":" in name])
        added = {name: group for name, group in thorough.items() if ":" in name}
        self.assertEqual({name.split(":")[0] for name in added}, {"thread", "address,undefined"})
        for name, group in added.items():
            sanitizer = name.split(":")[0]
            self.assertEqual(group.program[0], f"build/{sanitizer.replace(',', '-')}/tests_run")
            self.assertEqual((group.environment["TEST_SANITIZER"], "TEST_ALL" in group.environment), (sanitizer, False))
        self.assertEqual(set(added), {"thread: threads", "address,undefined: one process",
                                      "address,undefined: 3 ranks"})
        self.assertFalse([name for name in self.names("thread", TEST_ALL="yes") if ":" in name])
        other_mpi = self.names(build="build/mpich", TEST_ALL="yes")
        self.assertEqual(other_mpi["thread: threads"].program[0], "build/mpich-thread/tests_run")


class Alive(unittest.TestCase):
    def test_what_works_or_waits_for_work_goes_on(self):
        busy = run.alive.spawn([sys.executable, "-c", "import time\nend = time.time() + 2\nwhile time.time() < end: pass"])
        run.alive.finish(busy, 1)
        self.assertEqual(busy.returncode, 0)

    @staticmethod
    def working(pids):
        among = run.alive.processes()
        return [pid for pid in pids if pid in among and among[pid].state != "Z"]

    def test_what_sleeps_or_never_ends_is_given_up_with_all_it_started(self):
        for script in ("sleep 1000 & sleep 1000", "setsid sleep 1000 & while :; do :; done"):
            with self.subTest(script=script):
                process = run.alive.spawn(["bash", "-c", script], stdout=subprocess.PIPE)
                time.sleep(0.2)
                family = run.alive.family(process.pid, run.alive.processes())
                with self.assertRaises(run.alive.Stuck):
                    run.alive.finish(process, 0.5)
                self.assertGreater(len(family), 1)
                while self.working(family):  # the family ends soon; if not, the runner ends this test
                    time.sleep(0.01)

    def test_what_is_waited_for_comes_or_cannot_come_any_more(self):
        with tempfile.TemporaryDirectory() as folder:
            process = run.alive.spawn(["bash", "-c", f"sleep 0.2; touch {folder}/it; exit 7"])
            run.alive.until(lambda: os.path.exists(f"{folder}/it"), process)
            with self.assertRaisesRegex(run.alive.Stuck, "exit code 7"):
                run.alive.until(lambda: False, process)


if __name__ == "__main__":
    unittest.main()
