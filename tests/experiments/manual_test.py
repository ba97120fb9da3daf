"""Tests the man page and the shell completion, which are generated from the options. Both must cover all options. The man
page must cause no warnings, and the completion must work in bash."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from programs import chorale, start


def words_of(command):
    """Returns the options that a command's help lists."""
    return re.findall(r"(?m)^  (--[\w-]+)", start([chorale, command, "--help"]).stdout)


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.commands = re.findall(r"(?m)^  (\w+) ", start([chorale, "--help"]).stdout)
        cls.page = start([chorale, "man"]).stdout
        cls.script = start([chorale, "completion", "bash"]).stdout

    def complete(self, *words):
        """Returns the completions that bash offers for the last of these words."""
        quoted = " ".join(f"'{word}'" for word in words)
        program = (f'{self.script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _chorale; '
                   'printf "%s\\n" "${COMPREPLY[@]}"')
        result = start(["bash", "-uc", program], folder=self.folder())
        self.assertEqual(result.stderr, "")
        return result.stdout.split()

    def folder(self):
        if not hasattr(self, "holder"):
            self.holder = tempfile.TemporaryDirectory()
            self.addCleanup(self.holder.cleanup)
            open(f"{self.holder.name}/notes.txt", "w").close()
            os.mkdir(f"{self.holder.name}/runs")
        return self.holder.name

    def test_the_manual_names_every_command_and_every_option(self):
        for command in self.commands:
            section = re.search(rf"(?ms)^\.SS {command}\n(.*?)(?=^\.S[SH] )", self.page)
            self.assertTrue(section, command)
            for option in words_of(command):
                self.assertRegex(section.group(1), rf"\\fB{re.escape(option.replace('-', chr(92) + '-'))}[ \\]", command)

    def test_the_manuals_examples_call_the_installed_program(self):
        self.assertIn("\nmpirun \\-np 2 chorale compare small\n", self.page)
        self.assertNotIn("build/", self.page)

    def test_groff_formats_the_manual_without_warnings(self):
        if not shutil.which("groff"):
            self.skipTest("no groff here")
        result = subprocess.run(["groff", "-k", "-man", "-ww", "-Tutf8"], input=self.page, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("EXIT STATUS", re.sub(r"\x1b\[\d*m|.\x08", "", result.stdout))

    def test_commands_and_options_are_completed(self):
        self.assertEqual(sorted(self.complete("chorale", "")), sorted([*self.commands, "help", "--help", "--version"]))
        self.assertEqual(self.complete("chorale", "tr"), ["train"])
        self.assertEqual(self.complete("chorale", "help", "tr"), ["train"])
        for command in self.commands:
            offered = self.complete("chorale", command, "--")
            if command == "compare":  # compare also forwards options to train
                passed_on = [word for word in words_of("train") if word not in words_of(command) and word != "--layout"]
                self.assertEqual(sorted(offered), sorted(["--help", *words_of(command), *passed_on]))
            else:
                self.assertEqual(offered, ["--help", *words_of(command)])

    def test_values_are_completed(self):
        self.assertEqual(self.complete("chorale", "train", "--dtype", "b"), ["bf16"])
        self.assertEqual(self.complete("chorale", "train", "--dtype", "=", "f"), ["f32", "f16", "f64"])
        self.assertEqual(len(self.complete("chorale", "train", "--dtype", "=")), 4)
        self.assertIn("nano", self.complete("chorale", "train", "--preset", "n"))
        self.assertEqual(self.complete("chorale", "prove", "--vary", "algorithm,s"), ["algorithm,schedule"])
        self.assertEqual(self.complete("chorale", "bench", "--check", ""), ["yes", "no"])
        self.assertEqual(self.complete("chorale", "train", "--lr", ""), [])
        self.assertEqual(self.complete("chorale", "train", "--run-dir", ""), ["runs"])
        self.assertEqual(self.complete("chorale", "train", "--data", "n"), ["notes.txt"])

    def test_algorithms_backends_and_machines_are_completed(self):
        self.assertEqual(self.complete("chorale", "bench", "--algorithm", "ring,recursive_d"), ["ring,recursive_doubling"])
        self.assertEqual(self.complete("chorale", "bench", "--dtype", "bf"), ["bf16"])
        self.assertEqual(self.complete("chorale", "bench", "--backend", "shm,uc"), ["shm,ucx"])
        self.assertEqual(self.complete("chorale", "plan", "--machine", "sel"), ["selene"])
        self.assertEqual(self.complete("chorale", "plan", "--machine", "no"), ["notes.txt"])
        for command in ("bench", "train"):
            self.assertIn("simulated:selene", self.complete("chorale", command, "--backend", "sim"))
            # For bash, colons and equals signs are separate words. A completion replaces only the text after the last of
            # these signs.
            self.assertEqual(self.complete("chorale", command, "--backend", "simulated", ":", "sel"), ["selene"])
            self.assertEqual(self.complete("chorale", command, "--backend", "=", "simulated", ":", "sel"), ["selene"])
            self.assertIn("selene", self.complete("chorale", command, "--backend", "simulated", ":"))
        self.assertEqual(self.complete("chorale", "train", "--algorithm", "dp", "=", "recursive_d"), ["recursive_doubling"])

    def test_parts_of_layouts_are_completed(self):
        self.assertLessEqual({"dp", "tp", "pp", "cp", "ep", "z1", "z2", "z3", "sp", "1f1b"},
                             set(self.complete("chorale", "train", "--layout", "")))
        self.assertEqual(self.complete("chorale", "train", "--layout", "dp2.t"), ["dp2.tp"])
        self.assertEqual(self.complete("chorale", "train", "--layout", "=", "dp2.t"), ["dp2.tp"])
        self.assertEqual(self.complete("chorale", "compare", "--layouts", "dp4,dp2.t"), ["dp4,dp2.tp"])
        self.assertEqual(self.complete("chorale", "train", "--order", "pp,t"), ["pp,tp"])

    def test_positional_arguments_are_completed(self):
        self.assertEqual(self.complete("chorale", "show", "all_r"), ["all_reduce"])
        self.assertEqual(self.complete("chorale", "verify", "all_reduce", "ri"), ["ring"])
        self.assertEqual(self.complete("chorale", "show", "pipeline", "1f"), ["1f1b"])
        self.assertEqual(self.complete("chorale", "data", "tok"), ["tokenize"])
        self.assertEqual(self.complete("chorale", "report", "no"), ["notes.txt"])
        self.assertEqual(self.complete("chorale", "watch", "r"), ["runs"])
        self.assertEqual(self.complete("chorale", "compare", "sma"), ["small"])

    def test_zsh_is_supported_and_tcsh_refused(self):
        self.assertIn("compdef", start([chorale, "completion", "zsh"]).stdout)
        self.assertEqual(start([chorale, "completion", "tcsh"]).returncode, 2)


if __name__ == "__main__":
    unittest.main()
