"""Tests runs with a slow rank. A rank that takes twice as long as the others must be named within 20 steps. A rank that
takes 20 % longer must not be named.

   SLOW=5 /usr/bin/python3 tests/outside.py slow_rank_test

This test needs two cores that no other program uses. SLOW is the number of runs of each kind. In `make test`, SLOW is 0, and
only stragglers_test.cpp tests when a slow rank is named.
"""
import os
import random
import signal
import time
import unittest

from long_job import LongJob, ranks_of
from programs import finish, until
from tally import Tally

runs = int(os.environ.get("SLOW", "0"))
seed = int(os.environ.get("SEED", "1"))


def slow_down(pid, job, share):
    """Lets a process run only for the fraction `share` of the time, until the job ends."""
    period = 0.02
    while job.poll() is None:
        try:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(period * (1 - share))
            os.kill(pid, signal.SIGCONT)
            time.sleep(period * share)
        except ProcessLookupError:
            return


class SlowRank(LongJob):
    def warned(self, share, victim):
        """Returns the error output of a run with a slow rank. The process of the slow rank may run only for the fraction
        `share` of the time."""
        job = self.train("--no-save", ranks=2, iterations=22, samples=80, layout="dp{}")
        before = self.steps()
        until(lambda: self.steps() > before, job)
        slow_down(ranks_of(job)[victim], job, share)
        _, errors = finish(job)
        self.assertEqual(job.returncode, 0, errors)
        return errors

    @unittest.skipIf(runs == 0, "needs quiet cores: set SLOW")
    def test_a_rank_twice_as_slow_is_named(self):
        chance, tally = random.Random(seed), Tally(self)
        for trial in range(runs):
            victim = chance.randrange(2)
            with tally.trial(trial=trial, victim=victim):
                errors = self.warned(0.5, victim)
                self.assertRegex(errors, rf"rank {victim} on \S+ is slow: it computes .* times as long as its peers")
                self.assertEqual(errors.count(" is slow: "), 1, errors)

    @unittest.skipIf(runs == 0, "needs quiet cores: set SLOW")
    def test_a_rank_a_fifth_slower_is_no_alarm(self):
        tally = Tally(self)
        for trial in range(runs):
            with tally.trial(trial=trial):
                self.assertNotIn(" is slow: ", self.warned(1 / 1.2, trial % 2))


if __name__ == "__main__":
    unittest.main()
