"""Too little memory ends a run with an error that names it, never with a crash.

   /dev/shm     a tmpfs of random size instead of it, too small for the buffers of the ranks or for MPI's own
   RLIMIT_AS    a random limit on the address space of each rank

LIMITS random trials; SEED chooses others. About one every two seconds.
"""
import os
import random
import re
import subprocess
import tempfile
import unittest

from programs import chorale, launch, start

namespace = ["unshare", "--mount"] + ([] if os.getuid() == 0 else ["--map-root-user"])
model = ["--num-layers", "2", "--hidden-size", "256", "--num-attention-heads", "4", "--vocab-size", "4096", "--seq-length",
         "64", "--global-batch-size", "8", "--train-iters", "2", "--threads", "1", "--eval-samples", "4", "--no-save"]
runs = [["bench", "all_reduce", "--backend", "shm", "-e", "4M", "--repetitions", "3"],
        ["bench", "all_reduce", "--backend", "ucx,mpi", "-e", "4M", "--repetitions", "3"],
        ["train", *model, "--layout", "dp2"],
        ["train", *model, "--layout", "tp2"],
        ["train", *model, "--layout", "dp2.z3"]]
# What the loader and MPI say if they cannot start; then what launchers and libraries say of a crash.
before_us = r"error while loading shared libraries|(PMIX|OPAL|ORTE)[ _]ERROR|mca_base_component_repository_open|MPI_INIT"
crashes = r"[Ss]ignal|Bus error|Segmentation|Aborted|terminate called|core dumped"


class FullMemory(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def explained(self, done):
        """Whether the run ended well; if not, one error of ours, or the loader's own, must say what is missing."""
        said = done.stdout + done.stderr
        self.assertNotRegex(said, crashes)
        if done.returncode == 0:
            return True
        if re.search(before_us, said):
            return False
        self.assertRegex(said, r"(?m)^error: .*\n  .*\n  .*")
        self.assertNotIn("std::bad_alloc", said)
        return False

    def test_a_full_shared_memory_is_named(self):
        if subprocess.run([*namespace, "true"], capture_output=True).returncode != 0:
            self.skipTest("nothing can be mounted here")
        choose = random.Random(int(os.environ.get("SEED", "1")))
        for _ in range(-(-int(os.environ.get("LIMITS", "4")) // 2)):
            size, words = int(2 ** choose.uniform(2, 16)), choose.choice(runs)
            with self.subTest(f"{size}K {' '.join(words)}"):
                self.explained(start([*namespace, "bash", "-c", f'mount -t tmpfs -o size={size}K none /dev/shm && exec "$@"',
                                      "bash", *launch, "-n", "2", os.path.abspath(chorale), *words], folder=self.folder))

    def test_a_limit_of_the_address_space_is_named(self):
        choose = random.Random(int(os.environ.get("SEED", "1")))
        for _ in range(int(os.environ.get("LIMITS", "4")) // 2):
            kind, words = choose.choice(("as", "data")), choose.choice(runs)
            limit = int(2 ** (choose.uniform(26, 30) if kind == "as" else choose.uniform(23, 28)))
            with self.subTest(f"{kind} {limit >> 20}M {' '.join(words)}"):
                self.explained(start([*launch, "-n", "2", "prlimit", f"--{kind}={limit}", os.path.abspath(chorale), *words],
                                     folder=self.folder))


if __name__ == "__main__":
    unittest.main()
