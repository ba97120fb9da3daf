"""Tests the batch scripts of examples/slurm. The scripts must be valid bash, use valid options of `chorale`, and have their
directives where sbatch reads them."""
import glob
import os
import re
import subprocess
import tempfile
import unittest

from programs import chorale, start

scripts = sorted(glob.glob("examples/slurm/*.sbatch"))


def stand_in(path, does='echo "$(basename "$0")" "$@" >> "$CALLS"'):
    """Writes an executable script. By default, it records its arguments."""
    with open(path, "w") as file:
        file.write(f"#!/bin/bash\n{does}\n")
    os.chmod(path, 0o755)


class Slurm(unittest.TestCase):
    def test_directives_stand_before_the_first_command(self):
        self.assertGreaterEqual(len(scripts), 3)
        for script in scripts:
            with self.subTest(script=script), open(script) as file:
                lines = file.read().splitlines()
                self.assertEqual(subprocess.run(["bash", "-n", script]).returncode, 0)
                self.assertEqual(lines[0], "#!/bin/bash")
                directives = [n for n, line in enumerate(lines) if line.startswith("#SBATCH ")]
                commands = [n for n, line in enumerate(lines) if line and not line.startswith("#")]
                self.assertLess(max(directives), min(commands))
                text = "\n".join(lines)
                for wanted in ("--nodes=", "--ntasks-per-node=", "--time=", "--output="):
                    self.assertIn(f"#SBATCH {wanted}", text)

    def test_they_start_what_there_is(self):
        commands = re.findall(r"(?m)^  (\w+) ", start([chorale, "--help"]).stdout)
        for script in scripts:
            with self.subTest(script=script), tempfile.TemporaryDirectory() as folder:
                os.makedirs(f"{folder}/build")
                os.makedirs(f"{folder}/runs/slurm/latest/checkpoints")
                for name in ("srun", "mpirun", "build/chorale"):
                    stand_in(f"{folder}/{name}")
                stand_in(f"{folder}/scontrol", does="printf 'n0\\nn1\\n'")
                ran = start(["bash", os.path.abspath(script)], folder=folder, PATH=f"{folder}:{os.environ['PATH']}",
                            CALLS=f"{folder}/calls",
                            SLURM_SUBMIT_DIR=folder, SLURM_CPUS_PER_TASK="4", SLURM_NTASKS_PER_NODE="2")
                self.assertEqual(ran.returncode, 0, ran.stderr)
                with open(f"{folder}/calls") as file:
                    calls = file.read().splitlines()
                starters = ("srun ", "mpirun ", "chorale launch ")  # `chorale launch` starts mpirun itself
                self.assertTrue(any(call.startswith(starters) for call in calls), calls)
                parts = [part for call in calls for part in call.split("chorale ", 1)[1].split(" -- ")]
                for command, *words in map(str.split, parts):
                    if command == "compare" and command not in commands:
                        self.skipTest("there is no compare yet")
                    self.assertIn(command, commands)
                    help_text = start([chorale, command, "--help"]).stdout
                    for option in (word for word in words if word.startswith("--")):
                        self.assertRegex(help_text, rf"(?m)^  {option}\b", command)


if __name__ == "__main__":
    unittest.main()
