"""Tests that a full disk never counts as success. Each command that writes files must end with an error that names the path
and the reason, and older files must stay intact.

   disk    a tmpfs of random size, too small for the files          No space left on device
   room    for `train`, a tmpfs too small for a checkpoint            refused before the run begins
   file    a file size limit (RLIMIT_FSIZE) below the largest file    File too large

DISKS sets the number of random trials, about two per second. SEED selects the trials; by default, each commit uses different
trials.
"""
import os
import random
import re
import subprocess
import tempfile
import unittest

from programs import chorale, mount_namespace, random_seed, start
from tally import Tally

small = ["--preset", "tiny", "--train-iters", "1", "--threads", "1", "--eval-samples", "4"]
old = "old\n" * 100  # the old contents of a file that the program replaces
# Commands that write files. Each entry has the arguments and the name of the output file in the folder `there`.
writers = [
    (["data", "tokenize", "text", "--out", "there/new.bin"], "new.bin"),
    (["data", "train-bpe", "text", "--vocabulary", "300", "--out", "there/new.bpe"], "new.bpe"),
    (["show", "all_reduce", "ring", "--ranks", "8", "--svg", "there/new.svg"], "new.svg"),
    (["plan", *small[:4], "--dtype", "bf16", "--machine", "selene", "--timeline", "there/new.svg"], "new.svg"),
    (["report", "made/latest/run.h5", "there/new.html", "--html"], "new.html"),
    (["report", "made/latest/run.h5", "--tensorboard", "there/board"], ""),
    (["report", "made/latest/run.h5", "--svg", "there/figures"], ""),
    (["bench", "all_reduce", "--backend", "threads", "-e", "4K", "--repetitions", "20", "--out", "there/new.h5"], ""),
    (["export", "--load", "made/latest", "--out", "there/model"], ""),
    (["train", *small, "--run-dir", "there"], ""),
]
# A shell script. $1 contains the mount options, and the remaining arguments are the command. At the end, the contents of the
# disk are copied to `left`.
in_disk = """mount -t tmpfs -o "$1" none there && shift && { [ ! -e before ] || cp before there/"$1"; } && shift && "$@"
code=$?; cp -a there left; exit $code"""


class FullDisk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.namespace, cls.undisturbed = mount_namespace(), {}
        if not cls.namespace:
            raise unittest.SkipTest("nothing can be mounted here")
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder = holder.name
        with open(f"{cls.folder}/text", "w", encoding="ascii") as text:
            text.write(" ".join(str(number * number) for number in range(4000)))
        with open(f"{cls.folder}/before", "w", encoding="ascii") as before:
            before.write(old)
        os.mkdir(f"{cls.folder}/there")
        done = start([os.path.abspath(chorale), "train", *small, "--run-dir", "made"], folder=cls.folder)
        assert done.returncode == 0, done.stderr

    def write(self, words, name, size="64M", prefix=()):
        """Runs the command on a disk of the given size. Returns the result of the process, and {path: contents} of the files
        that remain."""
        subprocess.run(["rm", "-rf", f"{self.folder}/left"], check=True)
        done = start([*self.namespace, "bash", "-c", in_disk, "bash", f"size={size}", name or "unused", *prefix,
                      os.path.abspath(chorale), *words], folder=self.folder)
        left = {}
        for place, _, files in os.walk(f"{self.folder}/left"):
            for file in files:
                path = os.path.join(place, file)
                with open(path, "rb") as content:
                    left[os.path.relpath(path, f"{self.folder}/left")] = content.read()
        return done, left

    def whole(self, words, name):
        """Returns the files that the command leaves on a disk that is large enough."""
        if str(words) not in self.undisturbed:
            done, self.undisturbed[str(words)] = self.write(words, name)
            self.assertEqual(done.returncode, 0, done.stderr)
        return self.undisturbed[str(words)]

    def trial(self, words, name, limit, choose):
        whole = self.whole(words, name)
        checkpoint, everything = (sum(-(-len(content) // 4096) for path, content in whole.items() if part in path)
                                  for part in ("checkpoints/", ""))
        if limit == "file":
            least = 5 << 20 if words[0] == "train" else 0  # MPI itself creates files of 4 MiB
            most = max(len(content) for content in whole.values())
            done, left = self.write(words, name, prefix=["prlimit", f"--fsize={choose.randrange(least, most)}"])
            reason = "File too large"
        else:
            least, most = (2, checkpoint) if limit == "room" else (checkpoint + 2, max(checkpoint + 3, everything))
            done, left = self.write(words, name, size=f"{4 * choose.randrange(least, most)}K")
            reason = "No space left on device"
        if limit == "room":
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, r"\Aerror: there is no room for a checkpoint\n  .*there.*\n  .*--run-dir")
            self.assertEqual(left.keys(), {"unused"})
            return
        said = done.stderr
        self.assertEqual(left.get("unused", old.encode()), old.encode())
        if done.returncode == 0:  # this run needed less space than the run on a large disk
            self.assertEqual(left.keys(), whole.keys())
            return
        self.assertIn(done.returncode, (1, 2), said)
        self.assertEqual(len(re.findall("^error: ", said, re.M)), 1, said)
        self.assertRegex(said, rf"error: .*\n  .*there.*: {reason}")
        if name:
            self.assertEqual(left.get(name), old.encode(), "the old file is not intact")

    def test_a_full_disk_is_no_success_and_harms_no_old_file(self):
        choose, tally = random.Random(random_seed()), Tally(self)
        limits = {str(words): ["disk", "file"] for words, _ in writers}
        for words, _ in writers:
            if words[0] == "bench":
                limits[str(words)] = ["disk"]  # its record is smaller than MPI's files
            elif words[0] == "train":
                limits[str(words)] = ["disk", "room", "file"]  # train takes longest under the first limit
            else:
                choose.shuffle(limits[str(words)])
        left = int(os.environ.get("DISKS", len(writers)))
        while left > 0:  # each round runs every writer with the writer's next limit
            for words, name in choose.sample(writers, min(left, len(writers))):
                limit = limits[str(words)].pop(0)
                limits[str(words)].append(limit)
                with tally.trial(" ".join(words), limit=limit):
                    self.trial(words, name, limit, choose)
                left -= 1


if __name__ == "__main__":
    unittest.main()
