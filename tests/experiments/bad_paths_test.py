"""Tests command lines with an unusable path. The program must end before MPI starts, with exit code 2. Its error of three
lines must name the path, and no file may be created.

   every option that takes a path (by its placeholder in --help) × every kind of unusable path

An option takes a path if its placeholder contains FILE, DIR or PROGRAM. The test tries PATHS random pairs of an option and
an unusable path, about 25 per second. SEED selects the pairs.
"""
import os
import random
import re
import tempfile
import time
import unittest

from programs import chorale, launch, start, without_mpi, works
from tally import Tally

nobody = ["setpriv", "--reuid", "65534", "--clear-groups"] if os.getuid() == 0 else []  # root may read and write everything
small = ["--preset", "tiny", "--train-iters", "1"]

# Further arguments that make a command line valid, except for the path, which a test inserts. The keys are a command, or a
# command and an option. `@` stands for a positional path. setUpClass prepares a folder with run, text, tokens.bin and
# table.csv.
words = {
    "bench": ["all_reduce", "--backend", "threads", "-e", "4K"], "bench --against": ["--launches", "1", "--out", "new.h5"],
    "tune": ["all_reduce", "--backend", "threads", "-e", "4K"],
    "show": ["all_reduce", "ring"],
    "compare": ["--layouts", "dp1", *small], "compare --resume": [], "compare @": ["@"],
    "data": ["tokenize", "text"], "data @": ["tokenize", "@"], "data --tokenizer": ["tokenize", "text", "--out", "new.bin"],
    "export": ["--load", "run", "--out", "new"],
    "generate": ["--load", "run"],
    "plan": small, "plan --table": [], "plan --assumptions": ["--table", "table.csv", "--machine", "selene"],
    "plan --timeline": [*small, "--dtype", "bf16", "--machine", "selene"],
    "prove": ["--steps", "1", "--layouts", "dp1"],
    "train": small, "train --load": [], "train --load-hf": [],
    "train --offload-folder": [*small, "--place", "optimizer=file"],
    "train --tokenizer": [*small, "--vocab-size", "256", "--data", "tokens.bin"],
    "explain @": ["@"], "report @": ["@"], "report --check": ["run/run.h5"],
    "report --svg": ["run/run.h5"], "report --tensorboard": ["run/run.h5"], "watch": ["--once"], "watch @": ["@", "--once"],
}
in_folders = {"data --out", "show --svg"}  # the parent folder of the path must exist; other commands create it
unread = {"plan --offload-folder"}  # options whose path the command ignores
# Options that name files or folders that the program creates.
written = {"--out", "--svg", "--tensorboard", "--timeline", "--run-dir", "--save-dir"}
endings = {"--timeline": ".svg", "--document-mask": ".idx"}  # these options require paths with this ending
ranked = {"bench", "compare", "generate", "info", "prove", "train", "tune"}  # commands that start MPI


def options_with_paths():
    """Yields (command, option, placeholder) for each option that takes a path. For a positional path, the option is "@"."""
    names = re.findall(r"(?m)^  (\w+) ", start([chorale, "--help"]).stdout)
    for command in names:
        for option, placeholder in re.findall(r"(?m)^  (?:(--[\w-]+) )?(\S*[A-Z]\S*(?: [A-Z]+)?)(?:  |$)",
                                              start([chorale, command, "--help"]).stdout):
            if re.search(r"FILE|DIR|PROGRAM", placeholder):
                yield command, option or "@", placeholder


def makes(command, option):
    return option in written or (command, option) == ("tune", "--tuning")


class Bad:
    """The kinds of unusable path. Each method creates one kind of path in a folder, or returns None if the option accepts
    such a path."""

    def __init__(self, folder, command, option, placeholder):
        new = makes(command, option)
        self.folder, self.new, self.makes_folders = folder, new, f"{command} {option}" not in in_folders
        self.file, self.wants_folder = "FILE" in placeholder or "PROGRAM" in placeholder, "DIR" in placeholder
        self.ending = endings.get(option, "")

    def path(self, *parts):
        return os.path.join(self.folder, *parts) + self.ending

    def missing(self):
        return None if self.new else self.path("none")

    def below_nothing(self):
        return None if self.new and self.makes_folders else self.path("none", "x")

    def of_the_wrong_kind(self):
        if self.file and self.wants_folder:
            return None
        if self.file:
            os.mkdir(self.path("wrong"))
        else:
            with open(self.path("wrong"), "w", encoding="ascii"):
                pass
        return self.path("wrong")

    def loop(self):
        os.symlink("loop" + self.ending, self.path("loop"))
        return self.path("loop")

    def below_a_file(self):
        with open(os.path.join(self.folder, "file"), "w", encoding="ascii"):
            pass
        return self.path("file", "x")

    def too_long(self):
        return self.path("x" * 300)

    def empty(self):
        return ""

    def of_two_lines(self):
        return None if self.new else self.path("two\nlines")

    def forbidden(self):
        closed = os.path.join(self.folder, "closed")
        if self.new or self.wants_folder:
            os.mkdir(closed)
            if self.new:
                os.chmod(closed, 0o555)
                return self.path("closed", "new")
            os.chmod(closed, 0)
            return closed if not self.ending else None
        with open(self.path("closed"), "w", encoding="ascii"):
            pass
        os.chmod(self.path("closed"), 0)
        return self.path("closed")

    def on_a_disk_that_cannot_be_written(self):
        return f"/proc/none{self.ending}" if self.new else None


kinds = [name for name in vars(Bad) if not name.startswith("_") and name != "path"]


def escaped(path):
    return path.replace("\n", r"\x0a")


class BadPaths(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.home.cleanup)
        cls.folder = cls.home.name
        os.chmod(cls.folder, 0o777)
        mask = os.umask(0o022)  # another user must be able to read the files created here
        cls.addClassCleanup(os.umask, mask)
        made = start([chorale, "train", *small, "--run-dir", f"{cls.folder}/made"])
        assert made.returncode == 0, made.stderr
        os.symlink(f"{cls.folder}/made/latest", f"{cls.folder}/run")
        table = "hidden,heads,layers,t,p,d,batch,step_s\n1024,16,8,1,1,1,8,1\n"
        for name, text in (("text", "some words " * 100), ("table.csv", table)):
            with open(f"{cls.folder}/{name}", "w", encoding="ascii") as file:
                file.write(text)
        made = start([chorale, "data", "tokenize", f"{cls.folder}/text", "--out", f"{cls.folder}/tokens.bin"])
        assert made.returncode == 0, made.stderr
        # Finds out whether another user can run the program. This is not possible if the program or its files are in /root.
        others = works(*nobody, os.path.abspath(chorale), "data", "show", f"{cls.folder}/tokens.bin")
        able = [kind for kind in kinds if kind != "forbidden" or others]
        cls.trials = [(*option, kind) for option in options_with_paths() for kind in able
                      if " ".join(option[:2]) not in unread]
        random.Random(int(os.environ.get("SEED", "1"))).shuffle(cls.trials)

    def setUp(self):
        self.tally = Tally(self)

    def there(self):
        return sorted(os.path.join(place, name) for place, folders, files in os.walk(self.folder)
                      for name in [*folders, *files])

    def refused(self, command, option, placeholder, kind, launcher=(), **environment):
        """Tries one path. Returns False if the path would be valid for this option."""
        with tempfile.TemporaryDirectory(dir=self.folder) as bad:
            os.chmod(bad, 0o755)
            path = getattr(Bad(bad, command, option, placeholder), kind)()
            if path is None:
                return False
            asked = words.get(f"{command} {option}", words.get(command, []))
            if option != "@" and option in asked:  # arguments such as --load run are replaced by the unusable path
                asked = asked[:asked.index(option)] + asked[asked.index(option) + 2:]
            asked = [path if word == "@" else word for word in asked] + ([] if option == "@" else [option, path])
            before, began = self.there(), time.monotonic()
            result = start([*launcher, *(nobody if kind == "forbidden" else []), os.path.abspath(chorale), command, *asked],
                           folder=self.folder, **environment)
            seconds = time.monotonic() - began
            said = result.stderr
            with self.tally.trial(f"{command} {option} {kind}"):
                self.assertEqual(result.returncode, 2, said)
                self.assertEqual(result.stdout, "")
                self.assertEqual(said.count("error: "), 1, said)
                self.assertIn(escaped(path) or (placeholder if option == "@" else option), said)
                if not launcher:
                    self.assertRegex(said, r"\Aerror: .*\n  .*\n  .*\n\Z")
                self.assertEqual(self.there(), before)
                if os.environ.get("TIMED") and not launcher:
                    self.assertLess(seconds, 1)
        return True

    def test_a_path_that_cannot_be_used_is_refused_before_mpi_starts(self):
        left = int(os.environ.get("PATHS", "50"))
        self.assertGreater(len(self.trials), 500)
        for trial in self.trials:
            left -= self.refused(*trial, **without_mpi)
            if left == 0:
                break

    def test_ranks_say_it_once(self):
        left = int(os.environ.get("PATHS", "50")) // 25
        for trial in self.trials:
            alone = trial[1] == "--against" or trial[3] == "forbidden"  # starts the ranks itself; runs as another user
            if trial[0] in ranked and not alone:
                left -= self.refused(*trial, launcher=[*launch, "-n", "2"])
            if left <= 0:
                break


if __name__ == "__main__":
    unittest.main()
