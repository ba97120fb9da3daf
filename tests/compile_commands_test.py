"""Tests compile_commands.json, which language servers such as clangd read. Every source must be listed with a command that
compiles it."""
import json
import os
import re
import shlex
import shutil
import unittest

from programs import start


class CompileCommands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        made = start(["make", "-s", "SETUP=", "compile_commands.json"])
        assert made.returncode == 0, made.stdout + made.stderr
        with open("compile_commands.json", encoding="utf-8") as file:
            cls.entries = json.load(file)

    def test_every_source_is_listed_once(self):
        listed = [entry["file"] for entry in self.entries]
        self.assertEqual(len(listed), len(set(listed)))
        tops = ("src", "collectives", "layers", "parallel", "experiments", "examples", "tests")
        there = {os.path.join(folder, file) for top in tops for folder, _, files in os.walk(top) for file in files
                 if file.endswith(".cpp")}
        self.assertLessEqual(set(listed), there)
        # A source may be unlisted only if it needs a library that is missing, or if only `make peers` builds it.
        self.assertFalse([file for file in there - set(listed) if not re.search("backends/ucx|experiments/peers/", file)])
        self.assertTrue(all(os.path.samefile(entry["directory"], ".") for entry in self.entries))

    def test_a_command_compiles_its_file_with_gcc_and_clang(self):
        entry = next(entry for entry in self.entries if entry["file"] == "src/record/run_folder.cpp")
        command = shlex.split(entry["command"])
        # clangd is built from the same code as the clang compiler, so the test compiles with clang 16 or newer. Older
        # versions lack std::source_location.
        clang = next((name for name in ("clang++-19", "clang++-18", "clang++-17", "clang++-16") if shutil.which(name)), "")
        for compiler in filter(None, (command[0], clang)):
            result = start([compiler, *command[1:], "-fsyntax-only"], folder=entry["directory"])
            self.assertEqual((result.returncode, result.stderr), (0, ""), compiler)


if __name__ == "__main__":
    unittest.main()
