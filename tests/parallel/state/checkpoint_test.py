"""Kills the writer of a checkpoint at every system call, or makes system calls fail. Afterwards, the complete old set or
the complete new set of files must be loadable."""
import collections
import os
import random
import re
import shutil
import tempfile
import unittest

from programs import can_trace, start, tests_run, thorough
from tally import Tally

# Some architectures have only the system calls whose names contain `at`.
calls = ["mkdir", "mkdirat", "write", "fsync", "rename", "renameat", "renameat2", "symlink", "symlinkat", "unlink",
         "unlinkat", "rmdir"]
must_succeed = {"mkdir", "mkdirat", "write", "fsync", "rename", "renameat", "renameat2", "symlink", "symlinkat"}
errors = {"ENOSPC": "No space left on device", "EIO": "Input/output error", "EFBIG": "File too large",
          "EDQUOT": "Disk quota exceeded", "EACCES": "Permission denied"}
# System calls that are allowed to fail in a successful save: output to the terminal, and the rename before an earlier set is
# removed.
no_harm = r' write\([12],| rename\w*\(.*\.partial"(, 0)?\)'
steps = [10, 20, 30, 40, 30]  # the order in which the writer saves; the last save replaces the first save of step 30


def saved(output):
    return [int(step) for step in re.findall(r"^saved (\d+)", output, re.M)]


class Interruptions(unittest.TestCase):
    def setUp(self):
        if not can_trace():
            self.skipTest("strace may not trace here")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.runs, self.draws, self.tally = {}, {}, Tally(self)

    def write(self, name, *inject):
        """Saves all steps into a new folder. Returns the lines of the trace."""
        folder = os.path.join(self.folder.name, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        with tempfile.NamedTemporaryFile("r", errors="replace") as trace:
            strace = ["strace", "-qq", "-f", "-o", trace.name, "-e", "trace=" + ",".join(f"?{call}" for call in calls)]
            self.runs[name] = start([*strace, *inject, tests_run, "[.checkpoint-writer]"], TEST_FOLDER=folder)
            return trace.read().splitlines()

    def check_all(self, also=lambda name, run: None):
        """Checks that each folder loads the last step that the writer acknowledged, or the step that was being saved."""
        reader = start([tests_run, "[.checkpoint-reader]"], TEST_FOLDER=self.folder.name)
        loaded = dict(re.findall(r"^loaded (\S+) (.*)$", reader.stdout, re.M))
        self.assertEqual(set(loaded), set(self.runs))
        for name, run in self.runs.items():
            with self.tally.trial(name, loaded=loaded[name]):
                also(name, run)
                done = saved(run.stdout)
                self.assertEqual(done, steps[:len(done)])
                allowed = [str(step) for step in (done[-1:] + steps[len(done):len(done) + 1])]
                if not done and "no checkpoint" in loaded[name]:
                    continue
                self.assertIn(loaded[name], allowed)

    def test_no_system_call_is_a_bad_moment_to_die(self):
        for call in calls:
            for k in range(1, 100, 1 if thorough else 3):
                name = f"{call}-{k}"
                self.write(name, "-e", f"inject=?{call}:signal=KILL:when={k}")
                if self.runs[name].returncode == 0:
                    del self.runs[name]  # there was no k-th system call
                    shutil.rmtree(os.path.join(self.folder.name, name))
                    break
        enough = 60 if thorough else 20
        self.assertGreater(len(self.runs), enough, "too few runs were interrupted, so the test proves nothing")
        self.check_all()

    def test_a_disk_that_refuses_is_no_success(self):
        """With each error, POINTS random system calls of a save fail, and so do all later calls of the same kind. For
        fsync, sometimes only one call fails. SEED selects different calls."""
        choose = random.Random(int(os.environ.get("SEED", "1")))
        made = collections.Counter(line.split()[1].split("(")[0] for line in self.write("undisturbed"))
        self.assertEqual(self.runs.pop("undisturbed").returncode, 0)
        shutil.rmtree(os.path.join(self.folder.name, "undisturbed"))
        for error in errors:
            for point in range(int(os.environ.get("POINTS", "4"))):
                injected = False
                while not injected:  # draws again if only calls that are allowed to fail have failed
                    call = choose.choice([call for call in calls if call in must_succeed & made.keys()])
                    k = choose.randint(1, made[call])
                    name, later = f"{error}-{point}", choose.choice(("", "+")) if call == "fsync" else "+"
                    trace = self.write(name, "-e", f"inject={call}:error={error}:when={k}{later}")
                    injected = any("(INJECTED)" in line and not re.search(no_harm, line) for line in trace)
                self.draws[name] = f"{call} {k}"
        self.check_all(self.check_refused)

    def check_refused(self, name, run):
        call, said = self.draws[name].split()[0], errors[name.split("-")[0]]
        self.assertNotEqual(run.returncode, 0, self.draws[name])
        self.assertLess(len(saved(run.stdout)), len(steps), self.draws[name])
        if call != "write":  # a failing write also suppresses the error message
            self.assertRegex(" ".join(run.stdout.split()), rf"{self.folder.name}.*: {said}", self.draws[name])


if __name__ == "__main__":
    unittest.main()
