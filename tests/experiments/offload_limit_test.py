"""Tests the offload of tensors to a file, as seen from outside the program. A run with a cgroup memory limit must be
bit-identical to a run without one. The kernel's I/O counters must equal the planned bytes. After a kill or a disk failure, a
valid checkpoint must remain, and no other file."""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

from programs import chorale, only_in_test_all, sample, spawn, start, until

sys.path.insert(0, "experiments/analysis")
import limited  # noqa: E402: found through sys.path

steps = 40  # number of steps; large enough that a run can be interrupted between its first checkpoint and its end
everything = "parameters=file,gradients=file,optimizer=file"
# The shards have 3.5 MB and the windows 4 KiB, so a step spends most of its time reading and writing.
small = ["--preset", "tiny", "--layout", "dp1.z3", "--threads", "1", "--global-batch-size", "2", "--eval-samples", "1",
         "--offload-window", "4096", "--lr-decay-style", "constant", "--place", everything]
# The source of a library that makes reads of the offload file fail once a certain other file exists. Reads by io_uring would
# bypass this library.
failing_reads = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int io_uring_queue_init(unsigned entries, void* ring, unsigned flags) { return -ENOSYS; }
ssize_t pread64(int file, void* data, size_t bytes, off64_t offset) {
  char link[64], name[4096] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  if (readlink(link, name, sizeof name - 1) > 0 && strstr(name, "chorale-tier") && access(getenv("FAIL_ONCE"), F_OK) == 0)
    return errno = EIO, -1;
  return syscall(SYS_pread64, file, data, bytes, offset);
}
ssize_t pread(int file, void* data, size_t bytes, off_t offset) { return pread64(file, data, bytes, offset); }
"""


def why_no_groups():
    try:
        with limited.Groups([1 << 30]):
            return ""
    except limited.NoGroups as reason:
        return f"no memory cgroup can be made here: {reason}"


def tensors(run, step):
    """Returns the checksums of all tensor parts in a checkpoint."""
    with open(f"{run}/checkpoints/step-{step}/manifest.json", encoding="ascii") as file:
        return json.load(file)["manifest"]["tensors"]


class OffloadLimit(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(dir=".")  # not in /tmp, which may be in memory
        self.addCleanup(holder.cleanup)
        self.folder, self.disk = holder.name, f"{holder.name}/disk"
        os.mkdir(self.disk)

    def command(self, *words, disk=None):
        return [chorale, "train", *small, "--offload-folder", disk or self.disk, "--run-dir", f"{self.folder}/runs", *words]

    def train(self, *words):
        result = start(self.command(*words))
        self.assertEqual(result.returncode, 0, result.stderr)
        return os.path.realpath(f"{self.folder}/runs/latest")

    def error_in(self, output):
        """Returns the three lines of the only error in the output. A fourth line names the rank."""
        self.assertEqual(output.count("error: "), 1, output)
        lines = output[output.index("error: "):].splitlines()
        self.assertRegex(lines[3], "^  rank 0 of 1 ")
        return lines[:3]

    def has_saved_after(self, whole):
        run = os.path.realpath(f"{self.folder}/runs/latest")
        return run != whole and glob.glob(f"{run}/checkpoints/step-*[0-9]/manifest.json")

    def is_good(self, broken, whole):
        """Checks that an interrupted run has left nothing on the disk, and that the resumed run is bit-identical to the
        uninterrupted run."""
        self.assertEqual(os.listdir(self.disk), [])
        kept = [int(re.search(r"step-(\d+)$", path)[1]) for path in glob.glob(f"{broken}/checkpoints/step-*[0-9]")]
        self.assertTrue(kept)
        resumed = self.train("--train-iters", str(steps), "--load", f"{broken}/checkpoints/step-{min(kept)}")
        self.assertEqual(tensors(resumed, steps), tensors(whole, steps))

    @unittest.skipIf(why_no_groups(), why_no_groups())
    def test_a_model_trains_in_less_memory_than_its_states(self):
        for numerics, ranks in sample((("fast", "1"), ("exact", "1")), 2):
            result = start([sys.executable, "experiments/tools/offload_under_limit", "--program", chorale, "--folder",
                            self.folder, "--numerics", numerics, "--ranks", ranks, "--also", "40", "--", "--preset", "nano",
                            "--seq-length", "32", "--global-batch-size", "2", "--micro-batch-size", "1", "--train-iters",
                            "2", "--eval-samples", "1", "--threads", "1"])
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertIn("tensors are those of the free run\nall as it must be", result.stdout)

    @unittest.skipIf(why_no_groups(), why_no_groups())
    def test_a_limit_that_is_too_low_ends_the_run(self):
        with limited.Groups([40 << 20]) as groups:
            seen = limited.ranks(self.command("--train-iters", "1"), groups)
        self.assertNotEqual(seen.returncode, 0)

    def test_a_killed_run_leaves_nothing_and_a_good_checkpoint(self):
        whole = self.train("--train-iters", str(steps))
        process = spawn(self.command("--train-iters", "100000", "--save-interval", "2"), stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: self.has_saved_after(whole), process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        broken = os.path.realpath(f"{self.folder}/runs/latest")
        self.is_good(broken, whole)

    @only_in_test_all("a killed run leaves a good checkpoint too; file_tier_test.cpp makes reads fail")
    def test_a_disk_that_fails_ends_the_run_and_leaves_a_good_checkpoint(self):
        library = f"{self.folder}/failing_reads.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=failing_reads, text=True, check=True)
        whole = self.train("--train-iters", str(steps))
        once = f"{self.folder}/fails"
        process = spawn(self.command("--train-iters", "100000", "--save-interval", "2"), stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                        env={**os.environ, "LD_PRELOAD": library, "FAIL_ONCE": once})
        until(lambda: self.has_saved_after(whole), process)
        with open(once, "w", encoding="ascii"):
            pass
        error = process.communicate()[1]
        self.assertEqual(process.returncode, 1, error)
        error = self.error_in(error)
        self.assertIn("offloaded tensors could not be read", error[0])
        self.assertRegex(error[1], r"by pread and pwrite.*, byte \d+: Input/output error$")
        self.assertIn("resume from the last checkpoint", error[2])
        broken = os.path.realpath(f"{self.folder}/runs/latest")
        self.is_good(broken, whole)


if __name__ == "__main__":
    unittest.main()
