"""Tests runs with too little memory. Such a run must end with an error that names the missing memory. Chorale's own code
must never crash.

   /dev/shm                   is replaced by a tmpfs of random size
   RLIMIT_AS, RLIMIT_DATA     are set to a random limit on the memory of each rank

   nothing ─────────────── what a tiny run needs ───────────────────────── more than a run needs
     one trial in four: the      other trials: our own allocations fail
     loader or MPI may fail

MPI itself may crash as it starts. Crashes inside MPI are counted separately, and the guard must name the crashed rank.

LIMITS sets the number of random trials, about one per second. SEED selects the trials.
"""
import collections
import os
import random
import re
import subprocess
import tempfile
import time
import unittest

from alive import family, processes
from programs import chorale, finish, launch, mount_namespace, sample, sanitizer, spawn, start
from tally import Tally

model = ["--num-layers", "2", "--hidden-size", "256", "--num-attention-heads", "4", "--vocab-size", "4096", "--seq-length",
         "64", "--global-batch-size", "8", "--train-iters", "2", "--threads", "1", "--eval-samples", "4", "--no-save"]
runs = [["bench", "all_reduce", "--backend", "shm", "-e", "4M", "--repetitions", "3"],
        ["bench", "all_reduce", "--backend", "ucx,mpi", "-e", "4M", "--repetitions", "3"],
        ["train", *model, "--layout", "dp2"],
        ["train", *model, "--layout", "tp2"],
        ["train", *model, "--layout", "dp2.z3"]]
tiny = ["bench", "all_reduce", "--backend", "shm", "-e", "4K", "--repetitions", "3"]
# Messages of the dynamic loader and of MPI if the program cannot start.
before_us = r"error while loading shared libraries|(PMIX|OPAL|ORTE)[ _]ERROR|mca_base_component_repository_open|MPI_INIT"
# Messages about a crashed rank from mpirun, the C++ library and Chorale's guard.
crashes = r"exited on signal \d+|terminate called|was killed by SIG"
# UCX prints the backtrace of a crash, which begins with the frames of UCX's own handler. With too little memory, UCX prints
# no backtrace.
in_our_code = r"==== backtrace.*\n(?: +\d+ +\S*/libucs.*\n)+(?: +\d+ +\S*/libc\..*\n)+ +\d+ +\S*/chorale\("
as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # inside a user namespace, the user is root
in_shm = ["bash", "-c", 'mount -t tmpfs -o size="$1" none /dev/shm && shift && exec "$@"', "bash"]


def peaks(command):
    """Returns the exit code, and three maximum values in bytes: address space and data segment of a Chorale process, and the
    use of /dev/shm."""
    most = collections.Counter()
    process = spawn(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **as_root})
    while process.poll() is None:
        for pid in family(process.pid, processes()):
            try:
                with open(f"/proc/{pid}/status") as file:
                    status = dict(re.findall(r"(\w+):\t *(\S+)", file.read()))
                shm = os.statvfs(f"/proc/{pid}/root/dev/shm")
            except OSError:  # the process has just ended
                continue
            if status["Name"] == "chorale" and "VmPeak" in status:
                used = {"as": 1024 * int(status["VmPeak"]), "data": 1024 * int(status["VmData"]),
                        "shm": shm.f_frsize * (shm.f_blocks - shm.f_bfree)}
                most |= collections.Counter(used)
        time.sleep(0.005)
    finish(process)
    return process.returncode, most


@unittest.skipIf(sanitizer, "a sanitizer reserves terabytes of addresses")
class FullMemory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.namespace = mount_namespace()
        own_shm = [*cls.namespace, *in_shm, "1G"] if cls.namespace else []
        code, cls.needed = peaks([*own_shm, *launch, "-n", "2", os.path.abspath(chorale), *tiny])
        # Without a limit, the arena of each rank reserves an address range as large as the machine's memory. Under a limit,
        # arenas reserve less. So the size of this range is subtracted from the needed address space.
        cls.needed["as"] -= 2 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        assert code == 0 and cls.needed["as"] > 0, cls.needed

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
        self.choose = random.Random(int(os.environ.get("SEED", "1")))
        self.tally, self.ends = Tally(self), collections.Counter()

    def end_of(self, done):
        """Returns how the run ended. If the run failed, a single error from Chorale, the loader or MPI must name the missing
        memory."""
        said = done.stdout + done.stderr
        if done.returncode == 0:
            return "ended well"
        if re.search(crashes, said):
            self.assertIn("==== backtrace", said)
            self.assertNotRegex(said, in_our_code + "|terminate called")
            self.assertRegex(said, r"(?m)^error: rank \d+ on .* was killed by SIG\w+ in start-up\n  it has made no call yet")
            return "MPI crashed"
        if re.search(r"(?m)^error: .*\n  .*\n  .*", said):
            self.assertNotRegex(said, r"(?m)^error: .*bad_alloc")
            return "ours"
        self.assertRegex(said, before_us)
        return "before us"

    def try_limits(self, count, kinds, limited):
        """`limited` returns the command for a kind of limit, the limit in bytes, and the words of a run."""
        for _ in range(count):
            kind, words = self.choose.choice(kinds), self.choose.choice(runs)
            needed = self.needed[kind]
            limit = int(needed * self.choose.random() if self.choose.random() < 0.25 else
                        needed + 2 ** self.choose.uniform(18, 26))
            limit = max(limit, 1 << 26 if kind == "as" else 0)  # with less address space, the kernel cannot start a program
            with self.tally.trial(f"{kind} {limit >> 10}K {' '.join(words)}"):
                self.ends[self.end_of(start(limited(kind, limit, words), folder=self.folder, **as_root))] += 1
        print("; ".join(f"{end}: {self.ends[end]}" for end in ("ended well", "ours", "before us", "MPI crashed")))
        if count >= 10 and kinds != ("shm",):  # without /dev/shm, MPI uses other transports
            self.assertGreater(self.ends["ours"], 0, "no run was limited where it allocates: the test proves nothing")

    def by_disk(self, _, limit, words):
        return [*self.namespace, *in_shm, f"{limit >> 10}K", *launch, "-n", "2", os.path.abspath(chorale), *words]

    def by_limit(self, kind, limit, words):
        return [*launch, "-n", "2", "prlimit", f"--{kind}={limit}", os.path.abspath(chorale), *words]

    def test_a_full_shared_memory_is_named(self):
        if not self.namespace:
            self.skipTest("nothing can be mounted here")
        self.try_limits(-(-int(os.environ.get("LIMITS", "4")) // 2), ("shm",), self.by_disk)

    def test_addresses_for_what_a_run_needs_are_enough_however_much_memory_the_machine_has(self):
        for words in sample(runs, 3):
            with self.subTest(" ".join(words)):
                done = start(self.by_limit("as", self.needed["as"] + (1 << 30), words), folder=self.folder, **as_root)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_limit_of_the_address_space_is_named(self):
        self.try_limits(int(os.environ.get("LIMITS", "4")) // 2, ("as", "data"), self.by_limit)


if __name__ == "__main__":
    unittest.main()
