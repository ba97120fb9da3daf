"""Tests experiments/tools/miniature, which `make run` starts. This script runs a comparison on two emulated hosts, and then
the main comparison in the remaining time. After an interruption, no process may remain."""
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

from programs import finish, spawn, start, until

miniature = "experiments/tools/miniature"


class WithScripts(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def script(self, name, *lines):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write("\n".join(["#!/bin/bash", *lines, ""]))
        os.chmod(path, 0o755)
        return path


class Miniature(WithScripts):
    def run_without_hosts(self, budget, *lines):
        self.script("unshare", *lines, "echo unshare: Operation not permitted >&2", "exit 1")
        done = start([miniature, budget, "/no/program", "echo", "main comparison"],
                     PATH=f"{self.folder}:{os.environ['PATH']}")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_where_hosts_cannot_be_emulated_one_line_says_why(self):
        self.assertRegex(self.run_without_hosts("0"),
                         r"\Aleft out: three layouts on two emulated hosts, because hosts cannot be emulated here "
                         r"\(.*\)\necho main comparison --budget 0\nmain comparison --budget 0\n\Z")
        self.assertIn("Open MPI's mpirun", start([miniature, "45s", "/no/program", "true"], MPIRUN="true").stdout)

    def test_the_main_comparison_gets_the_time_that_is_left(self):
        for budget, seconds in (("90", 90), ("90s", 90), ("1.5m", 90), ("2H", 7200)):
            left = re.search(r"--budget ([\d.]+)s\n", self.run_without_hosts(budget, "sleep 2"))
            self.assertTrue(0 < float(left.group(1)) <= seconds - 2, (budget, left.group(1)))
        self.assertIn("--budget 0.001s\n", self.run_without_hosts("1s", "sleep 2"))
        for kept in ("0", "0s", "soon"):  # 0: no limit; the last value is refused by `compare`
            self.assertIn(f"--budget {kept}\n", self.run_without_hosts(kept))
        failed = start([miniature, "45s", "/no/program", "bash", "-c", "exit 3"], MPIRUN="true")
        self.assertEqual(failed.returncode, 3)


@unittest.skipUnless("Open MPI" in start(["mpirun", "--version"]).stdout, "the emulated hosts need Open MPI's mpirun")
class MiniatureOnHosts(WithScripts):
    @classmethod
    def setUpClass(cls):
        tried = subprocess.run(["experiments/tools/hosts", "with", "2", "1gbit", "true"], capture_output=True, text=True)
        if tried.returncode:
            raise unittest.SkipTest(f"no hosts can be emulated here: {tried.stderr.strip()}")

    def test_the_small_comparison_comes_first_on_two_hosts(self):
        program = self.script("program", 'echo "$(hostname) $*"')
        done = start([miniature, "45s", program, "echo", "main comparison"])
        lines = done.stdout.splitlines()
        words = "compare experiments/suites/two_hosts.toml"
        self.assertEqual(sorted(lines[:4]), [f"n0 {words}", f"n0 {words}", f"n1 {words}", f"n1 {words}"], done.stderr)
        self.assertRegex(lines[-1], r"^main comparison --budget \d+s$")
        failed = start([miniature, "45s", "/bin/false", "echo", "main comparison"])
        self.assertEqual(failed.returncode, 0)
        self.assertIn("failed: three layouts on two emulated hosts; the reason is above\n", failed.stdout)
        self.assertIn("\nmain comparison --budget ", failed.stdout)

    def test_an_interruption_ends_everything(self):
        program = self.script("program", "echo started", "sleep 987654321")
        # These tests may run as a background job of a shell. Background jobs ignore SIGINT, and bash cannot catch a signal
        # that is ignored at its start.
        process = spawn(["env", "--default-signal=INT", miniature, "45s", program, "touch", f"{self.folder}/main"],
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

        def commands():  # the command lines of all processes of the program
            found = []
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{pid}/cmdline") as words:
                        found.append(words.read().split("\0"))
                except OSError:  # the process has just ended
                    pass
            return [words for words in found if program in " ".join(words)]

        until(lambda: sum(words[1] == program for words in commands()) == 4, process)
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
        output, _ = finish(process)
        self.assertEqual(process.returncode, 130, output)
        while commands():  # the kernel may still be ending the namespaces
            time.sleep(0.05)
        self.assertFalse(os.path.exists(f"{self.folder}/main"))


if __name__ == "__main__":
    unittest.main()
