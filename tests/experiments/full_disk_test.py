"""A disk that gets full is never a success: each program that writes ends with an error that names the path and the reason,
and what was there before is intact.

   disk    a tmpfs of random size, smaller than what the program writes         No space left on device
   file    a limit on the size of files (RLIMIT_FSIZE), smaller than the largest    File too large

DISKS random trials; SEED chooses others. About one per second.
"""
import os
import random
import re
import subprocess
import tempfile
import unittest

from programs import chorale, start

small = ["--preset", "tiny", "--train-iters", "1", "--threads", "1", "--eval-samples", "4"]
old = "old\n" * 100  # what a file holds that the program replaces
# What writes: the words, and the file that it makes or replaces in the folder `there`.
writers = [
    (["data", "tokenize", "text", "--out", "there/new.bin"], "new.bin"),
    (["data", "train-bpe", "text", "--vocabulary", "300", "--out", "there/new.bpe"], "new.bpe"),
    (["show", "all_reduce", "ring", "--ranks", "8", "--svg", "there/new.svg"], "new.svg"),
    (["plan", *small[:4], "--dtype", "bf16", "--machine", "selene", "--timeline", "there/new.svg"], "new.svg"),
    (["report", "made/latest/run.h5", "there/new.html", "--html"], "new.html"),
    (["bench", "all_reduce", "--backend", "threads", "-e", "4K", "--repetitions", "20", "--out", "there/new.h5"], ""),
    (["export", "--load", "made/latest", "--out", "there/model"], ""),
    (["train", *small, "--run-dir", "there"], ""),
]
namespace = ["unshare", "--mount"] + ([] if os.getuid() == 0 else ["--map-root-user"])
# $1: options of the mount; the rest is the command. What the disk holds at the end is copied to `left`.
in_disk = """mount -t tmpfs -o "$1" none there && shift && { [ ! -e before ] || cp before there/"$1"; } && shift && "$@"
code=$?; cp -a there left; exit $code"""


class FullDisk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if subprocess.run([*namespace, "true"], capture_output=True).returncode != 0:
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
        """Runs the program on a disk of this size. Returns the result, and {path: bytes} of what is left."""
        subprocess.run(["rm", "-rf", f"{self.folder}/left"], check=True)
        done = start([*namespace, "bash", "-c", in_disk, "bash", f"size={size}", name or "unused", *prefix,
                      os.path.abspath(chorale), *words], folder=self.folder)
        left = {}
        for place, _, files in os.walk(f"{self.folder}/left"):
            for file in files:
                path = os.path.join(place, file)
                with open(path, "rb") as content:
                    left[os.path.relpath(path, f"{self.folder}/left")] = content.read()
        return done, left

    def trial(self, words, name, limit, choose):
        done, whole = self.write(words, name)
        self.assertEqual(done.returncode, 0, done.stderr)
        if limit == "disk":
            pages = sum(-(-len(content) // 4096) for content in whole.values())
            done, left = self.write(words, name, size=f"{4 * choose.randrange(2, max(3, pages))}K")
            reason = "No space left on device"
        else:
            least = 5 << 20 if words[0] == "train" else 0  # MPI has files of 4 MiB
            most = max(len(content) for content in whole.values())
            done, left = self.write(words, name, prefix=["prlimit", f"--fsize={choose.randrange(least, most)}"])
            reason = "File too large"
        said = done.stderr
        self.assertEqual(left.get("unused", old.encode()), old.encode())
        if done.returncode == 0:  # the program needed less than it left behind without a limit
            self.assertEqual(left.keys(), whole.keys())
            return
        self.assertIn(done.returncode, (1, 2), said)
        self.assertEqual(len(re.findall("^error: ", said, re.M)), 1, said)
        self.assertRegex(said, rf"error: .*\n  .*there.*: {reason}")
        if name:
            self.assertEqual(left.get(name), old.encode(), "the old file is not intact")

    def test_a_full_disk_is_no_success_and_harms_no_old_file(self):
        choose = random.Random(int(os.environ.get("SEED", "1")))
        trials = [(words, name, limit) for words, name in writers for limit in ("disk", "file")
                  if not (limit == "file" and words[0] == "bench")]  # its record is smaller than MPI's files
        left = int(os.environ.get("DISKS", "4"))
        while left > 0:
            for words, name, limit in choose.sample(trials, min(left, len(trials))):
                with self.subTest(" ".join(words), limit=limit):
                    self.trial(words, name, limit, choose)
                left -= 1


if __name__ == "__main__":
    unittest.main()
