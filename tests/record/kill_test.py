"""Tests that a record survives the death of its writer. If SIGKILL ends the writer at a random moment, no acknowledged row
may be lost, and the standard h5dump must open the file. KILLS sets the number of kills (default 8, in `make test-all` 25).
SEED selects the moments."""
import os
import random
import re
import signal
import tempfile
import time
import unittest

import h5py
import numpy as np

from programs import can_trace, chorale, finish, sample, spawn, start, tests_run, thorough, until
from tally import Tally

link, rename = "?link,?linkat", "?rename,?renameat,?renameat2"  # some architectures have only the newer system calls


def record_until(signal_number, seconds, folder):
    """Starts a program that writes rows without end, and sends a signal to it after some seconds. Returns the number of
    acknowledged rows and the exit code."""
    with open(os.path.join(folder, "said"), "w+") as said:
        writer = spawn([tests_run, "[endless-record]"], stdout=said, env={**os.environ, "TEST_FOLDER": folder})
        until(lambda: os.path.getsize(said.name) > 0, writer)
        time.sleep(seconds)
        writer.send_signal(signal_number)
        finish(writer)
        said.seek(0)
        acknowledged = re.findall(r"^acknowledged (\d+)\n", said.read(), re.M)
    return int(acknowledged[-1]) if acknowledged else 0, writer.returncode


class Kills(unittest.TestCase):
    def test_a_kill_loses_no_acknowledged_row(self):
        chance, total, tally = random.Random(int(os.environ.get("SEED", "1"))), 0, Tally(self)
        kills = int(os.environ.get("KILLS", "25" if thorough else "8"))
        for kill in range(kills):
            with tally.trial(kill=kill), tempfile.TemporaryDirectory() as folder:
                acknowledged, _ = record_until(signal.SIGKILL, chance.uniform(0, 0.4), folder)
                total += acknowledged
                if acknowledged or os.path.exists(os.path.join(folder, "run.h5")):
                    self.check_rows(os.path.join(folder, "run.h5"), acknowledged)
        self.assertGreater(total, 4 * kills, "hardly anything was written: the test proves nothing")

    def check_rows(self, path, acknowledged):
        dump = start(["h5dump", "-H", path])
        self.assertEqual(dump.returncode, 0, dump.stderr)
        if acknowledged == 0:
            return
        with h5py.File(path) as file:
            for group in ("train", "phases"):
                committed = int(file[group].attrs["committed_rows"])
                self.assertGreaterEqual(committed, acknowledged)
                np.testing.assert_array_equal(file[group]["step"][:committed], np.arange(committed))
            loss = file["train/loss"][:acknowledged]
            np.testing.assert_array_equal(loss, np.float32(5) / np.arange(1, acknowledged + 1, dtype=np.float32))
            times = file["phases/phase_time"][:acknowledged]
            np.testing.assert_array_equal(times[:, 2, 1], np.arange(acknowledged, dtype=np.float32))
        report = start([chorale, "report", path, "--group", "train", "--rows", "1"])
        self.assertEqual(report.returncode, 0, report.stderr)

    def test_no_system_call_is_a_bad_moment_to_die(self):
        """For many values of k, strace kills the writer in the k-th system call that changes the disk."""
        if not can_trace():
            self.skipTest("strace may not trace here")
        calls = f"pwrite64,{link},{rename},?unlink,?unlinkat,ftruncate,fsync,write"
        strace = ["strace", "-qq", "-f", "-o", "/dev/null", "-e", f"trace={calls}"]
        tally = Tally(self)
        for k in sample([*range(1, 40), *range(40, 900, 37)], 4):
            with tally.trial(call=k), tempfile.TemporaryDirectory() as folder:
                kill = ["-e", f"inject={calls}:signal=KILL:when={k}"]
                done = start([*strace, *kill, tests_run, "[endless-record]"], TEST_FOLDER=folder)
                self.assertNotEqual(done.returncode, 0)
                said = [line for line in done.stdout.splitlines() if line.startswith("acknowledged")]
                if os.path.exists(os.path.join(folder, "run.h5")):
                    self.check_rows(os.path.join(folder, "run.h5"), int(said[-1].split()[1]) if said else 0)
                else:
                    self.assertEqual(said, [])

    def test_a_disk_that_refuses_is_no_success(self):
        """For each kind of error, tries POINTS random points in time. From such a point on, all system calls of one kind
        fail. Acknowledged rows must survive."""
        if not can_trace():
            self.skipTest("strace may not trace here")
        tally = Tally(self)
        choose = random.Random(int(os.environ.get("SEED", "1")))
        for error, reason in (("ENOSPC", "No space left on device"), ("EIO", "Input/output error"),
                              ("EFBIG", "File too large"), ("EDQUOT", "Disk quota exceeded")):
            for _ in range(int(os.environ.get("POINTS", "1"))):
                call = choose.choice(("pwrite64", "fsync", rename, link, "ftruncate"))
                k = choose.randint(1, 40)
                with tally.trial(error=error, call=call, k=k), tempfile.TemporaryDirectory() as folder:
                    done = start(["strace", "-qq", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                                  f"inject={call}:error={error}:when={k}+", tests_run, "[endless-record]"],
                                 TEST_FOLDER=folder)
                    self.assertNotEqual(done.returncode, 0)
                    self.assertRegex(" ".join(done.stdout.split()), rf"{folder}/\S*: {reason}")
                    said = re.findall(r"^acknowledged (\d+)", done.stdout, re.M)
                    if said:
                        self.check_rows(f"{folder}/run.h5", int(said[-1]))

    def test_a_polite_signal_finishes_the_record(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            with self.subTest(signal=number), tempfile.TemporaryDirectory() as folder:
                _, code = record_until(number, 0.1, folder)
                self.assertEqual(code, 0)
                with h5py.File(os.path.join(folder, "run.h5")) as file, \
                        open(os.path.join(folder, "metrics.jsonl")) as lines:
                    self.assertEqual(file.attrs["status"].decode().rstrip("\0"), "stopped")
                    self.assertEqual(file["train"].attrs["committed_rows"], sum('"train"' in line for line in lines))


if __name__ == "__main__":
    unittest.main()
