"""Tests `chorale watch` on a training run, a killed run, a run that does not exist yet, and a suite of several runs."""
import json
import os
import pty
import signal
import subprocess
import tempfile
import time
import unittest

from programs import chorale, finish, rest_of, spawn, start

begin = {"table": "/", "run_id": "mine", "status": "running"}


def row(step):
    return {"table": "train", "step": step, "time": step * 0.1, "loss": 5 / step, "step_time": 0.1, "tokens_per_s": 640.0,
            "mfu": 0.5, "comm_share": 0.1, "bubble_share": 0.0, "peak_bytes": 1 << 20}


def write(run, *lines, cut=""):
    os.makedirs(run, exist_ok=True)
    with open(f"{run}/metrics.jsonl", "a") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines) + cut)


class Watch(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def watch(self, *words):
        process = spawn([chorale, "watch", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def ends(self, process, *says):
        output, errors = finish(process)
        self.assertEqual(process.returncode, 0, errors)
        for part in says:
            self.assertIn(part, output)
        return output

    def test_a_run_is_watched_from_before_it_exists_to_its_end(self):
        process = self.watch(f"{self.folder}/latest")
        self.assertEqual(process.stdout.readline(), f"waiting for a run in {self.folder}/latest, which does not exist yet; "
                                                    "press Ctrl-C to stop waiting\n")
        run = start([chorale, "train", "--preset", "tiny", "--threads", "1", "--global-batch-size", "4", "--eval-samples",
                     "4", "--train-iters", "12", "--no-save", "--run-dir", self.folder])
        self.assertEqual(run.returncode, 0, run.stderr)
        self.ends(process, "step 12/12  100 %", "held out", "the run has ended: ok\n")
        once = start([chorale, "watch", f"{self.folder}/latest", "--once"])
        self.assertEqual(once.returncode, 0, once.stderr)
        for part in ("1 rank  ok\n", "step 12/12", "tokens/s, MFU", "communication", "bubble", "on the fullest rank"):
            self.assertIn(part, once.stdout)

    def test_a_killed_run_is_silent_and_ctrl_c_leaves_it(self):
        write(self.folder, begin, row(1), cut='{"table": "train", "st')
        os.utime(f"{self.folder}/metrics.jsonl", (time.time() - 3600,) * 2)
        self.assertIn("nothing new for 1 h", start([chorale, "watch", self.folder, "--once"]).stdout)
        process = self.watch(self.folder)
        self.assertIn("nothing new for 1 h", process.stdout.readline())
        process.send_signal(signal.SIGINT)
        self.ends(process)

    def test_latest_may_move_to_another_run(self):
        write(f"{self.folder}/a", begin, row(1))
        write(f"{self.folder}/b", {**begin, "run_id": "other"}, row(3), row(4))
        os.symlink("a", f"{self.folder}/latest")
        process = self.watch(f"{self.folder}/latest")
        self.assertIn("step 1 ", process.stdout.readline())
        os.symlink("b", f"{self.folder}/next")
        os.rename(f"{self.folder}/next", f"{self.folder}/latest")
        self.assertIn("step 4 ", process.stdout.readline())
        write(f"{self.folder}/b", {"table": "/", "status": "stopped"})
        self.ends(process, "the run has ended: stopped\n")

    def test_a_suite_is_watched_through_its_runs(self):
        write(self.folder, begin)
        write(f"{self.folder}/runs/1", begin, row(1), {"table": "/", "status": "ok"})
        process = self.watch(self.folder)
        self.assertIn("step 1 ", process.stdout.readline())
        write(f"{self.folder}/runs/2", begin, row(7))
        self.assertIn("step 7 ", process.stdout.readline())
        write(self.folder, {"table": "/", "status": "ok"})
        self.ends(process)

    def test_a_terminal_is_redrawn_in_place(self):
        write(self.folder, begin, row(1), row(2))
        ours, theirs = pty.openpty()
        process = spawn([chorale, "watch", self.folder], stdout=theirs, env={**os.environ, "TERM": "xterm"})
        self.addCleanup(process.kill)
        os.close(theirs)
        seen = b""
        while b"step 2 " not in seen:
            seen += os.read(ours, 4096)
        write(self.folder, row(3), {"table": "/", "status": "ok"})
        seen += rest_of(ours)
        finish(process)
        self.assertEqual(process.returncode, 0)
        first, *_, last = seen.decode().split("\x1b[J")
        self.assertRegex(first, rf"\x1b\[{first.count(chr(10))}F$")
        self.assertIn("step 3 ", last)

    def test_what_cannot_be_watched_is_refused(self):
        record = f"{self.folder}/run.h5"
        open(record, "w").close()
        for words, says in (([f"{self.folder}/no", "--once"], "there is nothing to watch"),
                            ([f"{self.folder}/no/where"], "neither this folder nor the folder above it exists"),
                            (["a", "b"], "one run can be watched"),
                            ([record], f"{record} is a file\n  {chorale} watch {self.folder}\n")):
            result = start([chorale, "watch", *words])
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(says, result.stderr)


if __name__ == "__main__":
    unittest.main()
