"""Tests resumed runs. The checkpoints and the record rows of a resumed run must be bit-identical to those of an
uninterrupted run.

   straight    steps 1 ................ N
   first       steps 1 .. k, then it ends
   resumed              loads k .. N            same layout, or with exact numerics a different layout

RESUMES sets the number of random trials. SEED selects the trials; by default, each commit uses different trials. Trials use
the 22 strategies of the list below in random order, so 22 trials cover all of them. Numerics, recomputation, documents and
the step k are also random.
"""
import math
import os
import random
import re
import tempfile
import unittest

import h5py

from checkpoint_files import read_checkpoint
from programs import chorale, launch, random_seed, start, thorough
from tally import Tally

last = 6
model = ["--num-layers", "4", "--hidden-size", "32", "--num-attention-heads", "4", "--seq-length", "16", "--vocab-size",
         "64", "--global-batch-size", "8", "--micro-batch-size", "1", "--dropout", "0.1", "--threads", "1",
         "--eval-samples", "4", "--eval-interval", "1", "--lr-warmup-iters", "2", "--lr-decay-iters", str(last),
         "--lr-decay-style", "cosine"]
experts = ["--num-experts", "4", "--moe-aux-loss-coeff", "0.01"]
scaled = ["--dtype", "f16", "--loss-scale-window", "2", "--hysteresis", "1", "--initial-loss-scale", "1e6"]

# Each entry is (layout, more options, a different layout that resumes the run). Runs in f32 use exact or fast numerics. Runs
# with --dtype use fast numerics.
strategies = [
    ("dp1", [], "dp2.tp2"),
    ("dp4", [], "dp2.z3"),
    ("tp4", [], "dp4.z1"),
    ("tp2.sp.dp2", [], "pp2"),
    ("dp4.z1", [], "tp2.pp2"),
    ("dp4.z2", [], "dp2.z2"),
    ("dp4.z3", [], "tp4"),
    ("dp2.pp2.v2.interleaved", [], "dp1"),
    ("pp4.zb-h1", [], "dp2.pp2.z2"),
    ("pp2.v2.v-min", [], "dp4.z3"),
    ("dp2.ep2", experts, "dp4.ep4.z3"),
    ("dp2.cp2.z1", ["--context-scheme", "ring", "--context-cut", "zigzag"], ""),  # sums of the ring scheme are not exact
    ("cp4", ["--context-scheme", "ulysses"], "dp2.z3"),
    ("dp2.rep2.z3", [], "dp1.z3"),
    ("dp4.z3.hpz", ["--hpz", "2"], "dp2.rep2.z3"),
    ("dp2.z3", ["--place", "parameters=file,gradients=file,optimizer=file", "--offload-folder", "{folder}"], "tp2"),
    ("dp2.z1", ["--place", "optimizer=file", "--offload-folder", "{folder}", "--update", "delayed"], ""),
    ("dp2.z2", ["--place", "optimizer=file", "--offload-folder", "{folder}", "--update", "speculative"], "dp1"),
    ("dp2.tp2.z1.sp", ["--dtype", "bf16"], ""),
    ("dp2.pp2", ["--dtype", "bf16", "--no-master-weights"], ""),
    ("dp3.z3", [*scaled, "--global-batch-size", "6"], ""),
    ("dp2.tp2.pp2.z2", scaled, ""),
]


def rank_count(layout):
    """Returns the number of ranks of a layout. For example, `dp2.tp2.z1` has 4."""
    sizes = [re.match(r"(?:dp|tp|pp|cp|rep)(\d+)$", word) for word in layout.split(".")]
    return math.prod(int(size[1]) for size in sizes if size)


def train(layout, words, folder, *more):
    words = [word.format(folder=folder) for word in words]
    result = start([*launch, "-n", str(rank_count(layout)), chorale, "train", *model, "--layout", layout, *words,
                    "--run-dir", f"{folder}/runs", *more])
    assert result.returncode == 0, f"{layout} {words} {more}\n{result.stderr}"
    return os.path.realpath(f"{folder}/runs/latest")


def rows(run, after):
    """Returns the rows of the record after the given step. In a resumed run, these rows must be bit-identical."""
    found = {}
    with h5py.File(f"{run}/run.h5") as file:
        for table in ("train", "eval"):
            steps = file[f"{table}/step"][:]
            for column in ("loss", "grad_norm", "lr", "loss_scale", "skipped", "tokens", "dropped_share"):
                if column in file[table]:
                    found[table, column] = [value.tobytes() for value in file[table][column][:][steps > after]]
            found[table, "step"] = list(steps[steps > after])
    return found


class Resumes(unittest.TestCase):
    def same(self, straight, resumed, after):
        self.assertEqual(rows(resumed, after), rows(straight, after))
        self.assertEqual(rows(resumed, 0)["train", "step"], list(range(after + 1, last + 1)))
        theirs, ours = (read_checkpoint(f"{run}/checkpoints/step-{last}") for run in (straight, resumed))
        for fact in ("step", "cursor", "seed", "loss_scale", "good_steps", "patience", "updates", "model"):
            self.assertEqual(ours[0][fact], theirs[0][fact], fact)
        self.assertEqual(ours[1].keys(), theirs[1].keys())
        for name, tensor in theirs[1].items():
            self.assertEqual(ours[1][name], tensor, name)

    def trial(self, layout, words, other, choose):
        exact = "--dtype" not in words and (other != "" and choose.random() < 0.6)
        target = other if exact and choose.random() < 0.7 else layout
        words = [*words, "--numerics", "exact" if exact else "fast", "--recompute", choose.choice(("none", "full")),
                 "--document-mask", choose.choice(("none", "random:5"))]
        k = choose.randrange(1, last)
        name = f"{layout} to {target} at step {k}: {' '.join(words)}"
        with self.tally.trial(name), tempfile.TemporaryDirectory() as folder:
            straight = train(layout, words, folder, "--train-iters", str(last))
            first = train(layout, words, folder, "--train-iters", str(k))
            if target != layout:  # keeps the options of the model, but not those of the layout
                words = [word for i, word in enumerate(words) if not {words[i], words[i - 1]} &
                         {"--place", "--offload-folder", "--hpz", "--context-scheme", "--context-cut", "--update"}]
            resumed = train(target, words, folder, "--train-iters", str(last), "--load", first)
            self.same(straight, resumed, k)

    def test_a_resumed_run_is_the_uninterrupted_run(self):
        self.tally = Tally(self)
        choose = random.Random(random_seed())
        left = int(os.environ.get("RESUMES", "2" if thorough else "1"))
        while left > 0:
            for strategy in choose.sample(strategies, min(left, len(strategies))):
                self.trial(*strategy, choose)
                left -= 1


if __name__ == "__main__":
    unittest.main()
