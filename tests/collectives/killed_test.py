"""If a rank is killed in the middle of a collective, the run must leave no process, no file and no shared memory behind."""
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

from alive import finish, limit, spawn
from programs import backends, launch, tests_run

# Matches the names of files that MPI libraries and UCX leave behind. The test ignores files with these names.
theirs = re.compile(r"(vader|sm)_segment|ucx_shm|mpich_|ompi\.|openmpi-|pmix|prte|hwloc|psm")


def status_of(pid):
    """Returns the fields of /proc/PID/stat that follow the name (state, parent, …), or None if the process has ended."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()
    except OSError:
        return None


def children_of(pid):
    """Returns all descendants of process pid."""
    parents = {}
    for child in filter(str.isdigit, os.listdir("/proc")):
        if fields := status_of(child):
            parents[int(child)] = int(fields[1])
    below = {pid}
    while more := {child for child, parent in parents.items() if parent in below} - below:
        below |= more
    return below - {pid}


def runs(pid):
    fields = status_of(pid)
    return fields is not None and fields[0] != "Z"


def files_of(pids, folder):
    """Returns all files in `folder`, and the temporary files that the processes have open or mapped."""
    found = {os.path.join(place, name) for place, _, names in os.walk(folder) for name in names}
    for pid in pids:
        with open(f"/proc/{pid}/maps") as maps:
            found |= set(re.findall(r" (/.*)$", maps.read(), re.MULTILINE))
        found |= {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    checkout = os.path.realpath(os.path.join(os.path.dirname(__file__), "../..")) + "/"  # the checkout may be in /tmp
    return {file for file in found
            if file.startswith(("/dev/shm/", "/tmp/", folder)) and not file.startswith(checkout) and not theirs.search(file)}


class Killed(unittest.TestCase):
    def kill_in_flight(self, backend, victim_of, **environment):
        """Starts ranks that run all_reduces in an endless loop, kills one rank, and waits for the rest. No rank is allowed
        to continue, and no file is allowed to remain."""
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, **environment, "TEST_BACKEND": backend, "TMPDIR": folder,
                           "OMPI_MCA_btl_vader_backing_directory": folder}
            job = spawn([*launch, "-n", "3", tests_run, "[.endless-collectives]"], stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL, env=environment)
            try:
                while job.stdout.readline().strip() != "sums":
                    self.assertIsNone(job.poll(), "the ranks ended before they were killed")
                everybody = children_of(job.pid)
                ranks = [pid for pid in everybody if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "tests_run"]
                self.assertEqual(len(ranks), 3)
                files = files_of(ranks, folder)
                os.kill(victim_of(job, ranks), signal.SIGKILL)
                finish(job)
                waited = time.monotonic()
                while (left := [pid for pid in everybody if runs(pid)]) and time.monotonic() - waited < 5 * limit:
                    time.sleep(0.05)
                self.assertEqual(left, [], "processes still run")
                self.assertEqual([file for file in files | files_of([], folder) if os.path.exists(file)], [])
                self.assertNotEqual(job.returncode, 0)
            finally:
                for pid in children_of(job.pid) | {job.pid}:
                    if runs(pid):
                        os.kill(pid, signal.SIGKILL)
                job.stdout.close()
                job.wait()

    def test_nothing_is_left_behind(self):
        for backend in backends():
            for name, victim_of in (("rank", lambda job, ranks: ranks[1]), ("launcher", lambda job, ranks: job.pid)):
                with self.subTest(backend=backend, killed=name):
                    self.kill_in_flight(backend, victim_of)

    def test_a_rank_that_dies_while_the_kernel_copies_its_memory_ends_the_run(self):
        began = time.monotonic()
        self.kill_in_flight("shm", lambda job, ranks: ranks[1], TEST_MEMORY="heap")
        self.assertLess(time.monotonic() - began, limit)


if __name__ == "__main__":
    unittest.main()
