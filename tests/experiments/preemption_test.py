"""Tests runs that are asked to stop. Such a run must save a checkpoint and end with exit code 0, and a later run must
continue from this checkpoint.

   SIGNALS=20 /usr/bin/python3 tests/outside.py preemption_test

SIGNALS is the number of trials. In each trial, SIGUSR1 or SIGTERM is sent to the launcher or to a rank at a random moment.
After a SIGTERM, Open MPI's launcher waits for odls_base_sigkill_timeout (1 s), sends SIGTERM to the ranks, waits for the
same time again, and kills the ranks. On a slow machine, ranks may be killed before they have saved. So trials with SIGTERM
to the launcher run only if TIMED is set.
"""
import glob
import os
import random
import re
import signal
import time
import unittest

from long_job import LongJob, ranks_of
from programs import chorale, finish, start, until
from tally import Tally

signals = int(os.environ.get("SIGNALS", "3"))
seed = int(os.environ.get("SEED", "1"))
ways = [(number, to) for to in ("rank", "launcher") for number in (signal.SIGTERM, signal.SIGUSR1)]
if not os.environ.get("TIMED"):
    ways.remove((signal.SIGTERM, "launcher"))


def all_listen(job, count):
    """Whether all ranks have blocked SIGUSR1. Ranks that have blocked a signal read it from a file descriptor."""
    listening = 0
    for pid in ranks_of(job).values():
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8") as status:
                blocked = int(re.search(r"SigBlk:\s*(\w+)", status.read()).group(1), 16)
        except OSError:  # the process has just ended
            continue
        listening += blocked >> (signal.SIGUSR1 - 1) & 1
    return listening == count


class Preemption(LongJob):
    def test_a_signal_at_a_random_moment_saves_and_ends_well(self):
        chance, tally = random.Random(seed), Tally(self)
        for trial in range(signals):
            number, to = ways[trial % len(ways)]
            evaluates = ["--eval-interval", "3"] if trial % 3 == 2 else []
            job = self.train("--save-interval", "15", *evaluates, ranks=2, samples=4,
                             OMPI_MCA_odls_base_sigkill_timeout="10")
            until(lambda job=job: all_listen(job, 2), job)
            time.sleep(chance.uniform(0, 3))
            with tally.trial(trial=trial, signal=number.name, to=to):
                os.kill(job.pid if to == "launcher" else ranks_of(job)[chance.randrange(2)], number)
                _, errors = finish(job)
                stopped = re.search(r"stopped by a signal after step (\d+)", errors)
                self.assertTrue(stopped, errors)
                run = max(glob.glob(f"{self.folder.name}/runs/20*"))
                self.assertTrue(os.path.exists(f"{run}/checkpoints/step-{stopped.group(1)}/manifest.json"), errors)
                # After a SIGTERM, mpirun itself returns a different exit code.
                if (number, to) != (signal.SIGTERM, "launcher"):
                    self.assertEqual(job.returncode, 0, errors)
                after = int(stopped.group(1)) + 2
                resumed = start([chorale, "train", "--load", run, "--train-iters", str(after), "--eval-samples", "6",
                                 "--global-batch-size", "4", "--run-dir", f"{self.folder.name}/resumed"])
                self.assertEqual(resumed.returncode, 0, resumed.stderr)


if __name__ == "__main__":
    unittest.main()
