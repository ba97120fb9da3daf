"""A training run on several ranks that is long enough to be disturbed, and functions that observe the run from outside."""
import glob
import os
import re
import subprocess
import tempfile
import unittest

import alive
from alive import processes
from programs import chorale, launch, spawn


def ranks_of(job):
    """Returns {rank: pid}. The guard process is not included, because it hides its environment variables and is not a child
    of the job."""
    found = {}
    among = processes()
    for pid, process in among.items():
        if process.session != job.pid or process.state == "Z":
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as variables, open(f"/proc/{pid}/comm") as name:
                rank = re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", variables.read())
                if rank and name.read().strip() == "chorale":
                    found[int(rank.group(1))] = pid
        except OSError:  # the process has just ended
            continue
    return found


class LongJob(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def train(self, *more, ranks=3, iterations=1000000, layout="dp{}.z1", samples=6, **environment):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("CHORALE_")}
        job = spawn([*launch, "-n", str(ranks), chorale, "train", "--preset", "tiny", "--train-iters", str(iterations),
                     "--global-batch-size", str(samples), "--micro-batch-size", "1", "--layout", layout.format(ranks),
                     "--run-dir", f"{self.folder.name}/runs", "--eval-samples", "6", "--threads", "1", *more],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    env={**kept, "TMPDIR": self.folder.name, **environment})
        self.addCleanup(self.end, job)
        return job

    def end(self, job):
        alive.end(job.pid)
        job.stdout.close()
        job.stderr.close()
        job.wait()

    def steps(self):
        """Returns the total number of steps that the runs of this test have recorded."""
        count = 0
        for file in glob.glob(f"{self.folder.name}/runs/20*/metrics.jsonl"):
            with open(file, encoding="ascii") as metrics:
                count += metrics.read().count('"step"')
        return count
