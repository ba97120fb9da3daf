"""Tests that collectives stay correct while ranks are stopped and continued at random. Within seconds, the test finds errors
that a busy machine shows only after hours.

   RUNS=200 BACKENDS=mpi TEST_BUILD=build PYTHONPATH=tests /usr/bin/python3 tests/collectives/stop_and_go_test.py

RUNS is the number of runs per backend (1 in `make test`). If RUNS is above 1, successive runs use 2, 3, … 8 ranks, then 2
ranks again. Some runs execute random programs of collectives. In the remaining runs, ranks make mismatched calls on purpose,
and each rank must get an error.
"""
import os
import random
import signal
import tempfile
import time
import unittest

from programs import backends, finish, launch, sample, spawn, tests_run

runs = int(os.environ.get("RUNS", "1"))
seed = int(os.environ.get("SEED", "1"))
disturbed = float(os.environ.get("DISTURBED", "8"))  # how long ranks are stopped and continued, in seconds


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            return [int(child) for child in children.read().split()]
    except OSError:
        return []


def disturb(job, draw):
    """Stops one rank after another for a few milliseconds each, as the scheduler of a busy machine does."""
    until = time.monotonic() + disturbed
    while job.poll() is None and time.monotonic() < until:
        if ranks := children_of(job.pid):
            rank = draw.choice(ranks)
            try:
                os.kill(rank, signal.SIGSTOP)
                time.sleep(draw.choice([0.002, 0.01, 0.05, 0.2]))
                os.kill(rank, signal.SIGCONT)
            except ProcessLookupError:
                pass
        time.sleep(draw.choice([0.001, 0.01, 0.05]))


class StopAndGo(unittest.TestCase):
    def play(self, case, ranks, number, **environment):
        with tempfile.TemporaryFile("w+") as output:
            environment = {**os.environ, "SEED": str(seed + number), **environment}
            job = spawn([*launch, "-n", str(ranks), tests_run, case], env=environment, stdout=output, stderr=output)
            disturb(job, random.Random(f"{seed} {number} {case}"))
            finish(job)
            code = job.returncode
            output.seek(0)
            said = output.read()
        self.assertEqual(code, 0, f"run {number} of {case!r}, {ranks} ranks, {environment.get('BACKENDS')}\n{said[-6000:]}")

    def test_random_programs_are_right(self):
        for number in range(runs):
            for backend in os.environ.get("BACKENDS", ",".join(sample(backends(), 2))).split(","):
                self.play("random programs of collectives on every backend", 2 + number % 7 if runs > 1 else 4, number,
                          BACKENDS=backend, SEQUENCES="60")

    def test_mistakes_are_found(self):
        for number in range(runs):
            for case in sample(("calls that differ between ranks are an error on every rank",
                                "a mistake of one rank is told to all"), 1 if runs > 1 else 2):
                self.play(case, 2 + number % 7 if runs > 1 else 3, number)


if __name__ == "__main__":
    unittest.main()
