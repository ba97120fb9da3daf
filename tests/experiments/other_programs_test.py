"""Tests runs that take settings from a DeepSpeed config file or from Megatron flags. These runs must report and record the
settings, and save them in a form that a later run can use."""
import json
import os
import tempfile
import unittest

from programs import chorale, start

few_steps = ["--preset", "tiny", "--train-iters", "3", "--eval-samples", "2", "--threads", "1", "--no-save"]
file = {"train_batch_size": 8, "wall_clock_breakdown": True, "optimizer": {"type": "AdamW", "params": {"lr": 0.01}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 8}},
        "zero_optimization": {"stage": 1, "overlap_comm": False}}


class OtherPrograms(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
        with open(f"{self.folder}/ds.json", "w") as out:
            json.dump(file, out)

    def train(self, *words, name, code=0):
        result = start([chorale, "train", *words, "--run-dir", f"{self.folder}/{name}"])
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stderr

    def rows(self, name):
        """Returns the learning rate and the loss of each step."""
        with open(f"{self.folder}/{name}/latest/metrics.jsonl") as lines:
            rows = [json.loads(line) for line in lines]
        return [(row["lr"], row["loss"]) for row in rows if "lr" in row]

    def test_a_run_with_deepspeeds_file_says_records_and_repeats_what_it_means(self):
        said = self.train(*few_steps, "--ds-config", f"{self.folder}/ds.json", name="first")
        self.assertIn("ds.json: wall_clock_breakdown = true has no effect: every run records it", said)
        self.assertIn("zero_optimization.overlap_comm) has no effect: the ZeRO stage is 1", said)
        self.assertIn("DeepSpeed's defaults for missing keys: gradient_clipping 0.0", said)
        origins = start([chorale, "report", f"{self.folder}/first/latest/run.h5", "--format", "json"]).stdout
        self.assertIn("DeepSpeed's default of optimizer.params.betas.1", origins)
        rates = [rate for rate, _ in self.rows("first")]
        self.assertEqual(rates[:2], [0, 0])
        self.assertAlmostEqual(rates[2], 0.01 / 3)  # ln 2 / ln 8
        self.train("--config", f"{self.folder}/first/latest/config.toml", name="again")
        self.assertEqual(self.rows("again"), self.rows("first"))

    def test_plan_reads_the_file_too(self):
        result = start([chorale, "plan", "--preset", "tiny", "--ds-config", f"{self.folder}/ds.json", "--dp", "2"])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("dp2.z1", result.stdout)
        self.assertIn("wall_clock_breakdown", result.stderr)

    def test_a_flag_without_an_effect_is_refused_in_three_lines(self):
        for words, says in ((["--rotary-base", "500"], "family = gpt2"),
                            (["--sgd-momentum", "0.9"], "optimizer = adamw (default)"),
                            (["--swiglu"], "--family llama"),
                            (["--vocab-file", "x"], "no counterpart here")):
            said = self.train(*few_steps, *words, name="refused", code=2)
            self.assertEqual(len(said.splitlines()), 3, said)
            self.assertIn(says, said)
        self.assertFalse(os.path.exists(f"{self.folder}/refused/latest"))


if __name__ == "__main__":
    unittest.main()
