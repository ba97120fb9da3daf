"""Tests experiments/peers/train.py and torch_gpt.py. These PyTorch programs must train in every mode that the installed
PyTorch supports, on one rank and on two, and must print the mode."""
import contextlib
import importlib.util
import io
import os
import re
import sys
import unittest

from programs import finish, only_in_test_all, spawn, start

torch_gpt = "experiments/peers/torch_gpt.py"
small = {"L": "1", "D": "16", "H": "2", "T": "8", "V": "32", "B": "1", "STEPS": "3", "OMP_NUM_THREADS": "1"}


def train_module():
    spec = importlib.util.spec_from_file_location("peers_train", "experiments/peers/train.py")
    sys.path.insert(0, "experiments/peers")  # where a script finds runs.py
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Peers(unittest.TestCase):
    def test_a_version_is_asked_only_for_modes_that_it_has(self):
        train = train_module()
        for version, ranks, expected in (("1.13.0a0", 1, ["eager"]), ("1.13.0a0", 2, ["eager, DDP"]),
                                         ("2.5.1", 2, ["eager, DDP", "compiled, DDP"]),
                                         ("2.15.0+cu132", 1, ["eager", "compiled"]),
                                         ("2.15.0+cu132", 2, ["eager, DDP", "compiled, DDP", "eager, FSDP",
                                                              "compiled, FSDP"])):
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                found = [name for name, *_ in train.modes_of(version, ranks, ["eager", "compiled"])]
            self.assertEqual(found, expected)
            self.assertEqual(len(said.getvalue().splitlines()), 2 * ranks - len(expected))

    def test_an_interpreter_without_torch_is_refused_in_three_lines(self):
        result = start([sys.executable, "experiments/peers/train.py", "--python", "/bin/false"])
        self.assertEqual((result.returncode, len(result.stderr.splitlines())), (1, 3), result.stderr)
        self.assertIn("/bin/false cannot import torch", result.stderr)

    @only_in_test_all("trains PyTorch's model by our script for measurements, and nothing of ours")
    def test_torch_trains_on_one_rank_and_on_two(self):
        if start([sys.executable, "-c", "import torch"]).returncode:
            self.skipTest("no python3-torch here")
        alone = start([sys.executable, torch_gpt], AMP="0", **small)
        self.assertRegex(alone.stdout, r"^torch \S+ \(eager\S*.*\) ranks=1 bf16=False .* tokens/s=\d+ loss=\d", alone.stderr)
        both = {**os.environ, **small, "AMP": "0", "WORLD_SIZE": "2", "MASTER_PORT": train_module().free_port()}
        processes = [spawn([sys.executable, torch_gpt], env={**both, "RANK": rank}, stdout=-1, stderr=-1) for rank in "01"]
        said = [finish(process) for process in processes]
        self.assertEqual([process.returncode for process in processes], [0, 0], said)
        self.assertRegex(said[0][0], r"^torch \S+ \(eager, DDP\S*.*\) ranks=2 ")
        self.assertEqual(said[1][0], "")  # only rank 0 prints
        losses = [float(re.search(r"loss=(\S+)", text)[1]) for text in (alone.stdout, said[0][0])]
        self.assertAlmostEqual(*losses, delta=0.5)


if __name__ == "__main__":
    unittest.main()
