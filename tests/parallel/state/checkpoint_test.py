"""If the writer of a checkpoint is killed at any of its system calls, or a call fails, either the complete old or the
complete new set of files loads."""
import os
import random
import re
import shutil
import subprocess
import tempfile
import unittest

from programs import start, tests_run

calls = "mkdir,write,fsync,rename,symlink,unlink,unlinkat,rmdir"
errors = {"ENOSPC": "No space left on device", "EIO": "Input/output error", "EFBIG": "File too large",
          "EDQUOT": "Disk quota exceeded", "EACCES": "Permission denied"}
steps = [10, 20, 30, 40, 30]  # the order in which the writer saves; the last replaces the earlier checkpoint of step 30


def traced(inject, folder):
    strace = ["strace", "-qq", "-f", "-o", "/dev/null", "-e", f"trace={calls}", "-e", f"inject={inject}"]
    return start([*strace, tests_run, "[.checkpoint-writer]"], TEST_FOLDER=folder)


def saved(output):
    return [int(step) for step in re.findall(r"^saved (\d+)", output, re.M)]


class Interruptions(unittest.TestCase):
    def setUp(self):
        if subprocess.run(["strace", "-qq", "-f", "-o", "/dev/null", "true"], capture_output=True).returncode != 0:
            self.skipTest("strace may not trace here")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.acknowledged = {}

    def write(self, name, inject):
        folder = os.path.join(self.folder.name, name)
        os.mkdir(folder)
        done = traced(inject, folder)
        self.acknowledged[name] = saved(done.stdout)
        return done

    def check_all(self):
        """From every folder, the last step that the writer acknowledged loads, or the step that was being saved."""
        reader = start([tests_run, "[.checkpoint-reader]"], TEST_FOLDER=self.folder.name)
        loaded = dict(re.findall(r"^loaded (\S+) (.*)$", reader.stdout, re.M))
        self.assertEqual(set(loaded), set(self.acknowledged))
        for name, done in self.acknowledged.items():
            with self.subTest(name, loaded=loaded[name]):
                self.assertEqual(done, steps[:len(done)])
                allowed = [str(step) for step in (done[-1:] + steps[len(done):len(done) + 1])]
                if not done and "no checkpoint" in loaded[name]:
                    continue
                self.assertIn(loaded[name], allowed)

    def test_no_system_call_is_a_bad_moment_to_die(self):
        for call in calls.split(","):
            for k in range(1, 100):
                if self.write(f"{call}-{k}", f"{call}:signal=KILL:when={k}").returncode == 0:
                    break  # there was no k-th call
        self.assertGreater(len(self.acknowledged), 60, "too few runs were interrupted, so the test proves nothing")
        self.check_all()

    def test_a_disk_that_refuses_is_no_success(self):
        """POINTS random calls of a save fail with each error, as do all later calls of that kind. SEED chooses others."""
        choose = random.Random(int(os.environ.get("SEED", "1")))
        for error, said in errors.items():
            for point in range(int(os.environ.get("POINTS", "4"))):
                name, done, most = f"{error}-{point}", None, 32
                while done is None or done.returncode == 0:  # there was no k-th call
                    call, k = choose.choice(("write", "fsync", "rename", "mkdir", "symlink")), choose.randint(1, most)
                    shutil.rmtree(f"{self.folder.name}/{name}", ignore_errors=True)
                    done, most = self.write(name, f"{call}:error={error}:when={k}+"), most - 1
                with self.subTest(error=error, call=call, k=k):
                    self.assertLess(len(saved(done.stdout)), len(steps))
                    if call != "write":  # a failing write also suppresses the error message
                        self.assertRegex(" ".join(done.stdout.split()), rf"{self.folder.name}\S*: {said}")
        self.check_all()


if __name__ == "__main__":
    unittest.main()
