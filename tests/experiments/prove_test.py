"""Tests `chorale prove` as a user sees it. Covers the table of layouts, the record and the exit codes. A real difference
between runs must be found."""
import os
import re
import signal
import subprocess
import tempfile
import unittest

import h5py
import xarray

from programs import chorale, finish, launch, ranks, sample, spawn, start, thorough, until


def lines_of(path):
    if not os.path.exists(path):
        return 0
    with open(path) as file:
        return len(file.readlines())


class Prove(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def prove(self, *words, code=0):
        result = ranks(4, chorale, "prove", "--steps", "2", "--num-layers", "4", "--run-dir", self.folder, *words)
        self.assertEqual(result.returncode, code, result.stderr + result.stdout)
        return result.stdout.splitlines()

    def test_a_sample_of_layouts_is_equal_and_recorded(self):
        words = sample(["dp2.tp2.z2.sp", "dp2", "dp1.tp2.sp", "dp1.tp3", "dp2.z3", "dp2.pp2.z1", "dp1.pp4",
                        "dp1.tp2.pp2"], 3)
        lines = self.prove("--layouts", ",".join(words))
        self.assertIn(f"{len(words)} of {len(words)} equal to one rank in 2 steps", lines[-1])
        run = os.path.join(self.folder, "latest", "run.h5")
        with xarray.open_dataset(run, group="cases") as cases:
            self.assertEqual(list(cases.layout.values), words)
            self.assertEqual(set(cases.verdict.values), {"equal"})
        with xarray.open_dataset(run, group="prove") as steps:
            self.assertEqual(steps.sizes["row"], 2 * len(words))
            self.assertTrue((steps.equal == 1).all())
            for step in (1, 2):
                self.assertEqual(len(set(steps.loss.values[steps.step.values == step])), 1)

    def test_what_must_not_matter_does_not(self):
        updates = ("overlapped", "speculative", "delayed")
        vary = "schedule,bucket,recompute,update" if thorough else "bucket,recompute,update"
        lines = self.prove("--layouts", "dp2.pp2.z1", "--vary", vary)
        rows = [line for line in lines if "dp2.pp2.z1" in line]
        self.assertGreater(len(rows), 11 if thorough else 6)
        changes = ["bucket 1.0 KiB", "recompute full", *(f"update {when}" for when in updates)]
        for change in [*changes, *["schedule gpipe"][:thorough]]:
            self.assertTrue(any(f" {change} " in row for row in rows), (change, lines))
        self.assertTrue(all(row.endswith("equal") for row in rows), lines)

    def test_changes_are_combined_and_a_changed_model_has_its_own_reference(self):
        lines = self.prove("--preset", "tiny-moe", "--layouts", "dp2.ep2", "--combine", "capacity,recompute")
        rows = [line for line in lines if "dp2.ep2" in line]
        self.assertEqual(len(rows), 1 + 2 * 3)
        self.assertTrue(all(row.endswith("equal") for row in rows), lines)
        with xarray.open_dataset(os.path.join(self.folder, "latest", "run.h5"), group="prove") as steps:
            self.assertEqual(len(set(steps.loss.values[steps.step.values == 2])), 2)  # each capacity has its own loss

    def test_balancing_by_counts_of_whole_steps_has_the_same_bits(self):
        combined = "balance,capacity,recompute" if thorough else "balance,capacity"
        lines = self.prove("--preset", "tiny-moe", "--layouts", "dp2.ep2", "--combine", combined)
        rows = [line for line in lines if "dp2.ep2" in line]
        self.assertEqual(len(rows), 1 + 3 * 2 * (3 if thorough else 1))
        self.assertTrue(all(row.endswith("equal") for row in rows), lines)

    def test_plain_sums_are_found_to_differ_and_named(self):
        lines = self.prove("--layouts", "dp4", "--numerics", "fast", code=3)
        row = next(line for line in lines if "dp4" in line)
        self.assertRegex(row, r"DIFFERS at step \d: .*; through (world|dp) all_reduce")
        self.assertIn("0 of 1 equal", lines[-1])

    def test_a_layout_that_breaks_off_is_a_row_and_the_others_go_on(self):
        result = ranks(3, chorale, "prove", "--steps", "2", "--num-layers", "2", "--run-dir", self.folder, "--algorithm",
                       "recursive_doubling")
        self.assertEqual(result.returncode, 1, result.stderr + result.stdout)
        rows = {line.split()[1]: line for line in result.stdout.splitlines()[1:-1]}
        self.assertRegex(rows["dp3"], r"FAILED in step 1 on rank \d: .*recursive_doubling does not fit")
        self.assertTrue(rows["dp2"].endswith("equal"))
        with xarray.open_dataset(os.path.join(self.folder, "latest", "run.h5"), group="proofs") as proofs:
            broken = proofs.outcome.values == 2
            self.assertTrue(0 < broken.sum() < len(broken))
            self.assertTrue((proofs.steps.values == 2 * ~broken).all())

    def test_what_does_not_fit_is_refused_once_before_mpi_starts(self):
        for words, says in ((["dp2.tp5"], "too few ranks"), (["dp1.pp3", "--num-layers", "2"], "more stages than layers"),
                            (["dp2", "--combine", "capacity,bucket"], "the model has no experts"),
                            (["dp3,dp2", "--algorithm", "recursive_doubling"], "recursive_doubling does not fit")):
            result = ranks(4, chorale, "prove", "--run-dir", self.folder, "--layouts", *words)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertEqual(result.stderr.count("error: "), 1, result.stderr)
            self.assertIn(says, result.stderr)
            self.assertNotIn("MPI_ABORT", result.stderr)

    def test_axes_may_have_backends_of_their_own(self):
        lines = self.prove("--layouts", "dp2.tp2", "--backend", "tp=shm,dp=mpi")
        self.assertIn("1 of 1 equal", lines[-1])
        with xarray.open_dataset(os.path.join(self.folder, "latest", "run.h5"), group="cases") as cases:
            self.assertIn("dp=mpi,tp=shm", str(cases.backend.values[0]))

    def test_a_run_that_is_killed_after_a_request_to_end_keeps_what_it_proved(self):
        words = [*launch, "-n", "2", chorale, "prove", "--steps", "2", "--layouts", "dp2,dp1.tp2," * 40 + "dp2", "--run-dir",
                 self.folder]
        process = spawn(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        run = os.path.join(self.folder, "latest", "run.h5")
        rows = os.path.join(self.folder, "latest", "metrics.jsonl")
        until(lambda: lines_of(rows) >= 5, process)  # two lines of the run and three proofs; run.h5 may lack the last
        with h5py.File(run) as file:
            pids = [int(pid) for pid in file["ranks/pid"]]
        for number in (signal.SIGSTOP, signal.SIGTERM):  # stopped ranks cannot end before the launcher kills them
            for pid in pids:
                os.kill(pid, number)
        said = ""
        while "asks without a limit" not in said:
            line = process.stderr.readline()
            self.assertTrue(line, said)
            said += line
        doing = re.search(r"rank 0 on \S+ is still in layout \d+ of 81\n"
                          rf"  what is done is recorded: ({chorale} report \S+)\n", said)
        self.assertTrue(doing, said)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        finish(process)
        self.assertNotEqual(process.returncode, 0)
        with xarray.open_dataset(run, group="proofs") as proofs:
            done = proofs.sizes["row"]
            self.assertGreaterEqual(done, 2)
            self.assertTrue((proofs.outcome == 0).all())
        report = start(doing[1].split()).stdout
        self.assertRegex(" ".join(report.split()),
                         r" stopped: the ranks were asked to end; in layout \d+ of 81, rank [01] on \S+ "  # can be ahead
                         r"(was killed by SIGKILL|ended, probably by a signal)")
        self.assertIn(f"\n{done} of 81 cases were compared; {done} are equal to one rank, bit for bit\n", report)
        self.assertEqual(len(re.findall(r"(?m)^dp\S+ .* equal$", report)), done, report)
        watched = start([chorale, "watch", os.path.join(self.folder, "latest"), "--once"]).stdout
        self.assertIn("  2 ranks  stopped\n", watched)

    def test_a_polite_signal_stops_it_and_says_how_far_it_came(self):
        words = [*launch, "-n", "2", chorale, "prove", "--steps", "2", "--layouts", "dp2,dp1.tp2," * 200 + "dp2",
                 "--run-dir", self.folder]
        with open(f"{self.folder}/said", "w+") as said:
            process = spawn(words, stdout=said, stderr=subprocess.STDOUT)
            rows = os.path.join(self.folder, "latest", "metrics.jsonl")
            until(lambda: lines_of(rows) >= 4, process)
            process.send_signal(signal.SIGINT)
            finish(process)
            said.seek(0)
            text = said.read()
        self.assertNotEqual(process.returncode, 0)
        stopped = re.search(r"error: stopped\n  (\d+) of 401 layouts were compared, (\d+) of them equal\n", text)
        run = os.path.join(self.folder, "latest", "run.h5")
        if not stopped:  # on a busy machine, the launcher may have killed the ranks before the end of their step
            killed = re.search(r"the ranks were asked to end; rank 0 on \S+ is still in layout (\d+) of 401\n"
                               rf"  what is done is recorded: {chorale} report {re.escape(self.folder)}/\S+\n", text)
            self.assertTrue(killed, text)
            with h5py.File(run) as file:
                kept = list(file["proofs/outcome"])
            self.assertIn(len(kept), (int(killed[1]) - 1, int(killed[1])))
            self.assertEqual(set(kept), {0})
            return
        self.assertEqual(stopped[1], stopped[2])
        with h5py.File(run) as file:
            self.assertEqual(file.attrs["status"], b"stopped")
            verdicts = list(file["cases/verdict"].asstr())
            self.assertEqual((len(verdicts), verdicts.count("equal")), (401, int(stopped[1])))
            self.assertEqual(set(verdicts), {"equal", "not compared"})

    def test_more_ranks_than_there_are_and_unknown_layouts_are_refused(self):
        for words, says in ((["--layouts", "dp8"], "there are too few ranks"),
                            (["--layouts", "dq2"], "is not a part of a layout")):
            result = start([chorale, "prove", "--run-dir", self.folder, *words])
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(says, result.stderr)


if __name__ == "__main__":
    unittest.main()
