"""Tests the guard, the process that watches the ranks of a host. If a rank is killed or stopped, the run must end with a
single explanation. If the launcher is killed, no process and no file may remain.

   KILLS=50 /usr/bin/python3 tests/outside.py guard_test

Each variable sets a number of trials. KILLS, LAUNCHERS and STOPS count trials in which a rank is killed, a launcher is
killed, or a rank is stopped, at a random moment. CROSSED is the number of runs in which ranks wait for each other. HANGS is
the number of runs that hang for other reasons. In `make test`, these numbers are small.
"""
import glob
import itertools
import os
import random
import re
import signal
import subprocess
import time
import unittest

from alive import processes
from long_job import LongJob, ranks_of
from programs import backends, chorale, finish, launch, ranks, spawn, start, tests_run, until
from tally import Tally

kills, launchers, stops, hangs, crossed = (int(os.environ.get(name, few)) for name, few in (
    ("KILLS", 3), ("LAUNCHERS", 2), ("STOPS", 2), ("HANGS", 2), ("CROSSED", 2)))
seed = int(os.environ.get("SEED", "1"))
# The maximum number of seconds from the death of a rank or of the launcher until all processes have ended. TIMED is for
# quiet machines, and selects the time that docs/reliability.md promises.
most_seconds = 5 if os.environ.get("TIMED") else 50


def left_of(job):
    return [pid for pid, process in processes().items() if process.session == job.pid and process.state != "Z"]


def variable_of(pid, name):
    with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as variables:
        return re.search(rf"(?:^|\0){name}=([^\0]*)", variables.read()).group(1)


def guarded(job, count):
    """Waits until all ranks have a flight recorder, then returns {rank: pid}."""
    ranks_here = ranks_of(job)
    for pid in ranks_here.values():
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            if "chorale-flight" not in maps.read():
                return None
    return ranks_here if len(ranks_here) == count else None


class Guard(LongJob):
    def gone(self, job):
        """Waits until no process of the job is left. Returns the waiting time in seconds."""
        began = time.monotonic()
        while left_of(job) and time.monotonic() - began < most_seconds:
            time.sleep(0.02)
        self.assertEqual(left_of(job), [])
        return time.monotonic() - began

    def said_until(self, words, job):
        """Reads the job's stderr until the given words appear, and returns the text so far. Fails if the words do not
        appear."""
        errors = ""
        while words not in errors:
            line = job.stderr.readline()
            self.assertTrue(line, errors)
            errors += line
        return errors

    def test_a_killed_rank_is_named_and_the_run_can_be_explained(self):
        job = self.train("--save-interval", "20")
        until(lambda: self.steps() > 30, job)
        os.kill(ranks_of(job)[1], signal.SIGKILL)
        _, errors = finish(job)
        self.assertNotEqual(job.returncode, 0)
        self.assertRegex(errors, r"error: rank 1 on \S+ was killed by SIGKILL in (step|saving step) \d+\n"
                                 r"  its last call: call \d+ of ranks 0-2, \w+ of ")
        self.assertRegex(errors, r"resume from the newest checkpoint: --load \S+/checkpoints/step-\d+;")
        self.assertEqual(errors.count("error: "), 1, errors)
        told = start([chorale, "explain", f"{self.folder.name}/runs/latest", "--calls", "2"])
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertRegex(told.stdout, r"\nrank 1 on \S+: was killed by SIGKILL, in ")
        self.assertEqual(len(re.findall(r"^rank \d on", told.stdout, re.MULTILINE)), 3)
        self.assertEqual(len(re.findall(r"^  call \d+ of ranks 0-2, ", told.stdout, re.MULTILINE)), 6)

    def test_a_stopped_rank_is_named(self):
        chance, tally = random.Random(seed), Tally(self)
        for trial in range(stops):
            victim = chance.randrange(3)
            with tally.trial(trial=trial, victim=victim):
                job = self.train("--save-interval", "20", CHORALE_TIMEOUT="2")
                steps = self.steps()
                until(lambda steps=steps: self.steps() > steps + 10, job)
                time.sleep(chance.uniform(0, 1))
                os.kill(ranks_of(job)[victim], signal.SIGSTOP)
                _, errors = finish(job)
                self.assertEqual(job.returncode, 4, errors)
                self.assertRegex(errors, r"error: the run hangs: nothing has moved for [2-9]\.\d s\n"
                                         rf"  rank {victim} on \S+ is late: it is stopped, as by SIGSTOP, in [\w ]+\d+;")
                waits_for = rf"(for ranks? [\d,-]*{victim}|: a message from rank {victim} has not come)\n"
                self.assertRegex(errors, r"waits? in call \d+ of ranks 0-2, .*" + waits_for)
                self.assertEqual(errors.count("error: "), 1, errors)

    def test_a_run_that_is_paused_as_a_whole_goes_on(self):
        job = self.train(iterations=6, CHORALE_TIMEOUT="5", samples=120)  # a step takes longer than one check of the guard
        until(lambda: self.steps() > 1, job)
        everybody = ranks_of(job).values()
        for pid in everybody:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(7)
        for pid in everybody:
            os.kill(pid, signal.SIGCONT)
        _, errors = finish(job)
        self.assertEqual(job.returncode, 0, errors)

    def test_ranks_killed_at_random_moments_are_named(self):
        chance, tally = random.Random(seed), Tally(self)
        for trial in range(kills):
            job = self.train("--save-interval", "20")
            until(lambda job=job: guarded(job, 3), job)
            time.sleep(chance.uniform(0.1, 3))
            victim = chance.randrange(3)
            with tally.trial(trial=trial, victim=victim):
                os.kill(ranks_of(job)[victim], signal.SIGKILL)
                seconds = self.gone(job)
                _, errors = finish(job)
                self.assertNotEqual(job.returncode, 0)
                self.assertRegex(errors, rf"error: rank {victim} on \S+ was killed by SIGKILL in [\w -]+\d*\n  it", errors)
                print(f"kill {trial}: rank {victim}, all gone after {seconds:.1f} s")

    def test_a_killed_launcher_leaves_no_process_and_no_file(self):
        chance, tally = random.Random(seed), Tally(self)
        for trial in range(launchers):
            job = self.train("--save-interval", "20")
            number = variable_of(until(lambda job=job: guarded(job, 3), job)[0], "OMPI_MCA_ess_base_jobid")
            time.sleep(chance.uniform(0.1, 3))
            with tally.trial(trial=trial):
                os.kill(job.pid, signal.SIGKILL)
                job.wait()
                seconds = self.gone(job)
                self.assertEqual(glob.glob(f"/dev/shm/*.{int(number):x}.*"), [])
                self.assertEqual(glob.glob(f"{self.folder.name}/ompi.*/pid.*"), [])
                print(f"launcher {trial}: all gone after {seconds:.1f} s")

    def test_what_is_kept_is_said_before_the_launcher_kills_ranks_that_it_has_asked_to_end(self):
        job = self.train("--save-interval", "20", ranks=2)
        until(lambda: self.steps() > 30, job)
        waits_for, asked = ranks_of(job)[0], ranks_of(job)[1]
        os.kill(waits_for, signal.SIGSTOP)  # so neither rank can finish its step
        os.kill(asked, signal.SIGTERM)
        errors = self.said_until("without a limit", job)
        self.assertRegex(errors, rf"warning: the ranks were asked to end; rank 0 on \S+ is still in (step|saving step) \d+\n"
                                 rf"  what is done is recorded: {chorale} report \S+/runs/\S+\n"
                                 rf"  to go on from the newest checkpoint: mpirun -n 2 {chorale} train "
                                 rf"--config \S+/config.toml --load \S+/checkpoints/step-\d+\n"
                                 rf"  Open MPI kills them 1 s after it asks; kill -USR1 {job.pid} asks without a limit\n")
        os.kill(waits_for, signal.SIGCONT)
        _, rest = finish(job)
        self.assertEqual(job.returncode, 0, rest)
        self.assertIn("stopped by a signal after step", rest)

    def test_the_row_of_a_benchmark_that_keeps_ranks_is_named(self):
        job = spawn([*launch, "-n", "2", chorale, "bench", "all", "--algorithm", "all", "--backend", "mpi", "-f", "2"],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, job)
        self.said_until("bench mpi  ", job)
        for number in (signal.SIGSTOP, signal.SIGTERM):
            os.kill(ranks_of(job)[0], number)
        errors = self.said_until("without a limit", job)
        self.assertRegex(errors, r"rank 0 on \S+ is still in row \d+ of \d+: \w+ \w+ [\d.]+ (Ki|Mi)?B\n")

    def test_a_rank_that_dies_before_the_guard_knows_it_is_named(self):
        words = [chorale, "train", "--preset", "tiny", "--run-dir", self.folder.name]
        job = spawn([*launch, "-n", "2", *words, ":", "-n", "1", "sh", "-c", "kill -9 $$"], stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, env={**os.environ, "OMPI_MCA_odls_base_sigkill_timeout": "5"})
        self.addCleanup(self.end, job)
        self.said_until("  rank 2 never reached the guard: dead since the start, or late\n", job)

    def hang(self, how, victim, backend):
        """Runs three ranks, one of which hangs. Returns stderr and the duration of the run in seconds."""
        began = time.monotonic()
        result = ranks(3, tests_run, "[.hangs]", TEST_HANG=how, TEST_VICTIM=str(victim), TEST_BACKEND=backend,
                       CHORALE_TIMEOUT="2")
        self.assertEqual(result.returncode, 4, result.stdout + result.stderr)
        self.assertEqual(result.stderr.count("error: "), 1, result.stderr)
        return result.stderr, time.monotonic() - began

    def test_the_code_of_a_rank_that_fails_is_that_of_the_run_however_slow_the_launcher_is(self):
        for (victim, backend), how in itertools.product(enumerate(backends()), ("fails", "aborts")):
            variables = {"TEST_HANG": how, "TEST_VICTIM": str(victim % 3), "TEST_BACKEND": backend}
            with self.subTest(**variables):
                job = spawn([*launch, "-n", "3", tests_run, "[.hangs]"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, **variables})
                self.addCleanup(self.end, job)
                until(lambda job=job: processes()[job.pid].state == "T", job)
                time.sleep(1)  # in this second, the guard checks ten times and informs the other ranks
                os.kill(job.pid, signal.SIGCONT)
                _, errors = finish(job)
                self.assertEqual(job.returncode, 3, errors)
                self.assertEqual(errors.count("error: "), 1, errors)

    def test_an_endless_loop_and_a_lost_message_are_named(self):
        chance, tally = random.Random(seed), Tally(self)
        for trial in range(hangs):
            how, victim, backend = ("loop", "lost")[trial % 2], chance.randrange(3), chance.choice(backends())
            with tally.trial(trial=trial, how=how, victim=victim, backend=backend):
                errors, seconds = self.hang(how, victim, backend)
                self.assertRegex(errors, r"error: the run hangs: nothing has moved for 2\.\d s\n")
                if how == "loop":
                    self.assertRegex(errors, rf"  rank {victim} on \S+ is late: it computes, in its program; its last ")
                    self.assertRegex(errors, rf"wait in call \d+ of ranks 0-2, all_reduce of 1000 .*, for rank {victim}\n")
                else:
                    self.assertRegex(errors, r"ranks? [\d,-]+ waits? in call \d+ of ranks 0-2, .*which all its ranks "
                                             r"have begun")
                print(f"{how} {trial}: {backend}, {seconds:.1f} s with the start")

    def test_a_rank_that_others_wait_for_outside_of_calls_is_named(self):
        variables = {"TEST_HANG": "set-up", "TEST_VICTIM": "1", "CHORALE_TIMEOUT": "2"}
        job = spawn([*launch, "-n", "3", tests_run, "[.hangs]"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    env={**os.environ, **variables})
        self.addCleanup(self.end, job)
        errors = self.said_until("endless loop", job)
        self.assertRegex(errors, r"warning: ranks 0,2 have waited for 2\.\d s\n"
                                 r"  rank 1 on \S+ is late: it computes, in its program; its last call: call \d+ of ranks ")

    def test_ranks_that_wait_for_each_other_are_named_within_two_seconds(self):
        ways, tally = itertools.product((2, 0, 1), backends()), Tally(self)
        for trial, (victim, backend) in zip(range(crossed), itertools.cycle(ways)):
            with tally.trial(trial=trial, victim=victim, backend=backend):
                errors, seconds = self.hang("crossed", victim, backend)
                self.assertIn("error: ranks wait for each other\n", errors)
                self.assertRegex(errors, rf"rank {victim} on \S+ waits for rank \d in call \d+ of ranks 0-2, barrier")
                self.assertRegex(errors, rf"rank \d on \S+ waits for rank {victim} in call \d+ of ranks 0-2, all_reduce")
                print(f"crossed {trial}: {backend}, {seconds:.1f} s with the start")

    def test_a_rank_that_fails_says_so_alone(self):
        job = self.train(iterations=30, CHORALE_LOAD=f"{self.folder.name}/nothing")
        _, errors = finish(job)
        self.assertNotEqual(job.returncode, 0)
        self.assertNotIn("was killed", errors)


if __name__ == "__main__":
    unittest.main()
