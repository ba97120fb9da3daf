"""Tests the output of `chorale report` for a single run. For every run, the output must fit on one screen of 40 lines and 80
columns. The reason of a failure must come first, then loss, speed, and planned and measured memory and bytes. The user can
name the folder of a run instead of its record."""
import os
import re
import tempfile
import unittest

import h5py
import numpy

from programs import chorale, launch, ranks, start

program = os.path.abspath(chorale)
small = ["--preset", "tiny", "--threads", "1", "--eval-samples", "4", "--global-batch-size", "4"]


class RunSummary(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder = holder.name

    def train(self, name, count, *words, code=0):
        result = ranks(count, program, "train", *small, "--run-dir", f"{self.folder}/{name}", *words)
        self.assertEqual(result.returncode, code, result.stderr)
        return name

    def summary(self, *words, folder=None):
        """Returns the output of `report`, which must fit on one screen. Commands and paths of temporary folders may be wider
        than the screen."""
        result = start([program, "report", *words], folder=folder or self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        lines = result.stdout.splitlines()
        self.assertLessEqual(len(lines), 40, result.stdout)
        self.assertEqual([line for line in lines if len(line) > 80 and "/" not in line], [])
        self.assertIn(f"report {words[0] if words[0].endswith('.h5') else words[0] + '/run.h5'} --all",
                      re.sub(r" \\\n +", " ", result.stdout))
        self.assertNotRegex(result.stdout, r"(?i)\bnan\b(?!:)")
        return result.stdout

    def test_a_dense_run_and_the_run_that_goes_on_from_it(self):
        self.train("dense", 1, "--train-iters", "30", "--save-interval", "10", "--eval-interval", "10")
        said = self.summary("dense/latest")
        with h5py.File(f"{self.folder}/dense/latest/run.h5") as file:
            losses, held_out = file["train/loss"][:], file["eval/loss"][-1]
            planned, peak = file["memory/planned_total"][:].max(), file["train/peak_bytes"][-1] / 2**20
            speed = numpy.median(file["train/tokens_per_s"][3:])
            self.assertEqual(file.attrs["warm_up"], 3)  # a tenth of the number of steps
        self.assertIn("  steps       1 to 30 of 30\n", said)
        self.assertIn(f"  loss        {losses[0]:.4f} in the first step, {losses[-1]:.4f} in the last; held out "
                      f"{held_out:.4f},", " ".join(said.split("\n              ")) + " ")
        self.assertRegex(said, r"(?m)^  speed +(\S+) tokens/s, ")
        self.assertAlmostEqual(float(re.search(r"(?m)^  speed +([\d.]+)", said)[1]), speed, delta=speed / 1000)
        self.assertIn("without the first 3 steps", re.sub(r"\s+", " ", said))
        self.assertRegex(said, rf"(?m)^peak memory/rank +{planned / 2**20:.4g} MiB +{peak:.4g} MiB +\d\.\d{{3}}$")
        self.assertRegex(said, r"(?m)^bytes sent, all ranks +0 B +0 B +-$")
        self.assertRegex(said, r"(?m)^  a step +forward \d+ %, backward \d+ %, ")
        self.assertIn("  checkpoints 3, the newest of step 30: ", said)
        self.assertRegex(said, rf"(?m)^   1 +{losses[0]:.4f} ")
        self.assertRegex(said, rf"(?m)^  30 +{losses[-1]:.4f} ")
        self.train("more", 1, "--train-iters", "31", "--load", f"{self.folder}/dense/latest", "--no-save")
        self.assertIn("  steps       31 to 31 of 31, resumed from", self.summary("more/latest"))
        everything = start([program, "report", "dense/latest", "--all"], folder=self.folder).stdout
        self.assertGreater(len(everything.splitlines()), 200)
        self.assertRegex(everything, r"(?m)^  layout +dp1$")

    def test_layouts_experts_offload_and_a_run_without_evaluation(self):
        self.train("pp", 2, "--layout", "pp2", "--train-iters", "3", "--no-save")
        self.assertIn("bubble", self.summary("pp/latest"))
        self.train("zero", 2, "--layout", "dp2.z3", "--train-iters", "3", "--no-save", "--place",
                   "optimizer=file", "--offload-folder", self.folder)
        said = self.summary("zero/latest")
        with h5py.File(f"{self.folder}/zero/latest/run.h5") as file:
            sent = file["traffic/bytes_measured"][:].sum() / 2**20
        self.assertIn("  layout      dp2.z3 on 2 ranks, backend ", said)
        self.assertRegex(said, rf"(?m)^bytes sent, all ranks +{sent:.4g} MiB +{sent:.4g} MiB +1.000$")
        self.assertRegex(said, r"(?m)^bytes read from the slow tier +(\S+ MiB) +\1 +1.000$")
        self.train("experts", 1, "--num-experts", "4", "--moe-expert-capacity-factor", "0.5", "--train-iters", "2",
                   "--no-save")
        self.assertRegex(self.summary("experts/latest"), r"(?m)^  experts +[\d.]+ % of their choices were dropped$")
        self.train("one", 1, "--train-iters", "1", "--no-save")

        def stopped(file):
            file["eval"].attrs["committed_rows"] = 0
            file.attrs["status"] = numpy.bytes_("stopped")
        self.change("one", stopped)
        said = self.summary("one/latest")
        self.assertNotIn("held out", said)
        self.assertIn("run.h5\nstopped: by a signal\n", said)

    def test_parts_of_a_step_add_up_and_speed_is_tokens_over_its_time(self):
        self.train("parts", 1, "--train-iters", "9", "--no-save")

        def uneven(file):  # there are two kinds of steps, so medians would combine the best values of both
            phases = file["phases/phase_time"]
            phases[:], file["phases"].attrs["committed_rows"] = 0, 9
            for step in range(9):
                seconds = (1, 9)[step % 2]
                file["train/step_time"][step], file["train/tokens_per_s"][step] = seconds, 96 / seconds
                for phase in {0, 1, 2} - {step % 3}:  # two of the phases forward, backward and optimizer
                    phases[step, :, phase] = 0.45 * seconds
            file["train/tokens"][:], file["train/grad_norm"][:], file["train/grad_norm"][4] = 96, 1.5, 77
        self.change("parts", uneven)
        said = self.summary("parts/latest")
        shares = [int(share) for share in re.findall(r"(\d+) %", re.search(r"(?ms)^  a step(.*?)^$", said)[1])]
        self.assertEqual(sum(shares), 100, said)
        speed, step = re.search(r"(?m)^  speed +(\S+) tokens/s, (\S+) s a step", said).groups()
        self.assertAlmostEqual(float(speed) * float(step), 96, delta=0.5)
        self.assertIn("  gradient    norm 1.500 in the last step, at most 77.000, in step 5\n", said)

    def change(self, name, change):
        with h5py.File(f"{self.folder}/{name}/latest/run.h5", "r+") as file:
            change(file)

    def test_a_failed_run_says_first_why(self):
        self.train("blown", 1, "--train-iters", "20", "--lr", "100", "--lr-warmup-iters", "0", "--optimizer", "sgd",
                   "--clip-grad", "0", "--numerics", "exact", "--no-save", code=1)
        self.assertRegex(self.summary("blown/latest"), r"^blown/latest/run.h5\nfailed: step \d+: .*\n  .*\n")
        with h5py.File(f"{self.folder}/blown/latest/run.h5") as file:
            self.assertIn("failed: " + file["failure"].asstr()[()].split("\n")[0][:50], self.summary("blown/latest"))
        # If rank 0 was killed, the status in the record is still "running". The guard processes store their observations in
        # files beside the record.
        self.train("killed", 2, "--layout", "dp2", "--train-iters", "2", "--no-save")
        self.change("killed", lambda file: file.attrs.modify("status", numpy.bytes_("running")))
        self.assertIn("run.h5\nrunning: written ", self.summary("killed/latest"))
        self.change("killed", lambda file: file.attrs.modify("heartbeat", 0.0))
        self.assertIn("ago: the run was probably killed\n", self.summary("killed/latest"))
        flight = f"{self.folder}/killed/latest/flight"
        os.mkdir(flight)
        with open("tests/fuzz/corpus/flight/two_ranks.json", encoding="utf-8") as seen, \
                open(f"{flight}/n0-0.json", "w", encoding="utf-8") as dump:
            dump.write(seen.read())
        explained = start([program, "explain", "killed/latest"], folder=self.folder).stdout
        why = re.search(r"error: (.*)", explained)[1]
        self.assertIn(f"run.h5\nfailed: {why[:60]}", self.summary("killed/latest"))

        def before_the_first_step(file):
            for group in ("train", "phases", "memory", "eval"):
                file[group].attrs["committed_rows"] = 0
            del file["traffic"]
        self.change("killed", before_the_first_step)
        self.assertIn("  steps       none finished of 2\n", self.summary("killed/latest"))

    def test_records_of_other_commands(self):
        there = f"{self.folder}/other"
        os.mkdir(there)
        for words in (["prove", "--steps", "1", "--run-dir", "prove"], ["info", "--run-dir", "info"],
                      ["bench", "kernels", "--preset", "tiny", "--steps", "1", "--run-dir", "kernels"],
                      ["train", "--preset", "gpt3-175b", "--dtype", "bf16", "--layout", "dp4.tp8.pp8.sp.z1", "--backend",
                       "simulated:selene", "--run-dir", "simulated"],
                      ["bench", "all_reduce", "broadcast", "--backend", "threads", "--algorithm", "all", "-e", "256K", "-n",
                       "3", "--out", "bench.h5"]):
            made = start([program, *words], folder=there, MPIRUN=" ".join(launch))
            self.assertEqual(made.returncode, 0, made.stderr)
        self.assertRegex(self.summary("prove/latest", folder=there), r"\n(\d+) of \1 cases are equal to one rank")
        self.assertRegex(self.summary("info/latest", folder=there), r"(?m)^host +cpuset ")
        self.assertRegex(self.summary("kernels/latest", folder=there), r"(?m)^attention +")
        self.assertIn(", simulated on selene", self.summary("simulated/latest", folder=there))
        self.assertIn("all_reduce", self.summary("bench.h5", folder=there))

    def test_a_folder_of_runs_means_its_newest_and_nothing_means_latest(self):
        there = f"{self.folder}/home"
        os.mkdir(there)
        result = start([program, "report"], folder=there)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("runs/latest: no such file", result.stderr)
        self.train("home/runs", 1, "--train-iters", "2", "--no-save")
        self.assertEqual(start([program, "report"], folder=there).stdout, self.summary("runs/latest", folder=there))
        newest = start([program, "report", "runs"], folder=there)
        self.assertTrue(newest.stdout.startswith("runs/latest/run.h5\n"), newest.stderr)
        page = start([program, "report", "--html"], folder=there)
        self.assertEqual(page.stdout, "runs/latest/report.html\n", page.stderr)
        result = start([program, "report", "."], folder=there)
        self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 3))
        self.assertIn("this folder has no record\n  . has neither run.h5 nor latest/run.h5\n", result.stderr)


if __name__ == "__main__":
    unittest.main()
