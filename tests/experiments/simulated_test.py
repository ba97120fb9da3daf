"""Tests `--backend simulated:NAME`, with which train, compare and bench run in virtual time."""
import csv
import glob
import os
import unittest

from in_folder import InFolder
from programs import chorale, ranks, start

model = ["--preset", "gpt3-175b", "--dtype", "bf16", "--global-batch-size", "128"]
layouts = ["dp4.tp8.pp8.sp.z1", "dp8.tp8.pp4.sp.z1.v2.interleaved"]


class Simulated(InFolder):
    def the_record(self):
        return glob.glob(os.path.join(self.folder, "*", "run.h5"))[0]

    def rows_of(self, *words):
        return list(csv.DictReader(self.run_it(*words, "--format", "csv").splitlines()))

    def test_a_simulated_run_takes_the_time_that_a_plan_predicts(self):
        planned = self.rows_of("plan", *model, "--layout", layouts[0], "--machine", "selene")[0]
        self.run_it("train", *model, "--layout", layouts[0], "--backend", "simulated:selene", "--run-dir", self.folder)
        text = self.run_it("report", self.the_record(), "--group", "train", "--format", "csv")
        row = list(csv.DictReader(text.splitlines()))[0]
        self.assertAlmostEqual(float(row["step_time"]) / float(planned["step_s"]), 1, places=5)
        self.assertAlmostEqual(float(row["mfu"]), float(planned["mfu"]), places=3)

    def test_a_simulated_run_has_the_columns_of_a_real_one(self):
        words = ["train", "--preset", "nano", "--layout", "pp2", "--global-batch-size", "4", "--train-iters", "1",
                 "--eval-samples", "1"]
        simulated = ["--backend", "simulated:eos", "--dtype", "bf16"]
        columns = {}
        for name, start_it in (("real", lambda *more: ranks(2, chorale, *words, *more)),
                               ("simulated", lambda *more: start([chorale, *words, *simulated, *more]))):
            folder = os.path.join(self.folder, name)
            result = start_it("--run-dir", folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            record = glob.glob(os.path.join(folder, "*", "run.h5"))[0]
            columns[name] = [list(self.rows_of("report", record, "--group", group)[0]) for group in ("train", "pipeline")]
        self.assertEqual(columns["simulated"], columns["real"])

    def test_simulated_layouts_are_compared_without_repetitions_and_drawn(self):
        text = self.run_it("compare", *model, "--layouts", ",".join(layouts), "--backend", "simulated:selene",
                           "--run-dir", self.folder)
        self.assertRegex(text, r"is the fastest with [\d.]+ tokens/s, [\d.]+ times the slowest, .*, in virtual time")
        with open(glob.glob(os.path.join(self.folder, "*", "report.html"))[0]) as file:
            page = file.read()
        for part in ("What a simulated step is spent on", "Memory per rank", "The pipeline, measured and ideal", "wait: dp",
                     "stage 7", "simulated"):
            self.assertIn(part, page)

    def test_more_ranks_of_a_layout_are_a_line_of_the_scaling_figure(self):
        self.run_it("compare", *model, "--layouts", "dp1.tp8.pp8.sp,dp2.tp8.pp8.sp,dp4.tp8.pp8.sp", "--backend",
                    "simulated:selene", "--run-dir", self.folder)
        with open(glob.glob(os.path.join(self.folder, "*", "report.html"))[0]) as file:
            self.assertIn("Strong scaling", file.read())

    def test_a_ring_in_virtual_time_takes_its_closed_form(self):
        rows = self.rows_of("bench", "all_reduce", "--backend", "simulated:selene", "--ranks", "8", "--algorithm",
                            "ring,auto", "--in-place", "no", "-b", "1M", "-e", "64M")
        self.assertEqual(len(rows), 6)
        for row in rows:
            if row["algorithm"] == "ring":
                self.assertAlmostEqual(float(row["seconds"]) / float(row["predicted_seconds"]), 1, places=3)
                self.assertEqual(int(float(row["bytes_sent"])), 14 * int(row["bytes"]))
        by_size = {}
        for row in rows:
            by_size.setdefault(row["bytes"], {})[row["algorithm"]] = float(row["seconds"])
        for times in by_size.values():
            self.assertLessEqual(times["auto"], times["ring"])

    def test_calls_and_steps_share_the_uplinks_of_leaf_switches(self):
        with open("experiments/machines/selene.toml") as file:
            text = file.read()
        machine = os.path.join(self.folder, "switches.toml")
        with open(machine, "w") as file:
            file.write(text.replace("[network]\n", "[network]\nswitch_hosts = 4\noversubscription = 4\n"))
        row, = self.rows_of("bench", "all_to_all", "--backend", f"simulated:{machine}", "--ranks", "64", "--algorithm",
                            "direct", "--in-place", "no", "-b", "64M", "-e", "64M")
        uplink = 4 * 8 * 22e9 / 4
        self.assertAlmostEqual(float(row["seconds"]), 32 * 32 * 2**20 / uplink + 5e-6, places=6)
        model = ["--preset", "gpt3-175b", "--dtype", "bf16", "--layout", "dp8.tp8.pp4.sp.z1", "--order", "dp,pp,tp"]
        steps = [float(self.rows_of("plan", *model, "--global-batch-size", "256", "--machine", name)[0]["step_s"])
                 for name in ("selene", machine)]
        self.assertGreater(steps[1], 1.1 * steps[0])

    def test_a_bench_in_virtual_time_is_recorded(self):
        record = os.path.join(self.folder, "bench.h5")
        self.run_it("bench", "all_gather", "--backend", "simulated:eos", "--ranks", "8", "--out", record)
        self.assertIn("simulated", self.run_it("report", record, "--group", "series"))

    def test_a_suite_compares_simulated_machines_and_numbers_of_ranks(self):
        suite = os.path.join(self.folder, "machines.toml")
        with open(suite, "w") as file:
            file.write('[[runs]]\ncommand = "bench"\nalgorithm = "ring"\nin-place = "no"\nbegin = 65536\nend = 65536\n'
                       'vary.backend = ["simulated:selene", "simulated:v100"]\nvary.ranks = [4, 8]\n')
        text = self.run_it("compare", suite, "--run-dir", self.folder)
        for count in (4, 8):
            self.assertRegex(text, rf"(?m)^all_reduce, {count} ranks .*simulated:selene ring .*simulated:v100 ring ")
        rows = self.rows_of("report", self.the_record(), "--group", "summary")
        self.assertEqual(sorted(row["ranks"] for row in rows), ["4", "4", "8", "8"])

    def test_offload_and_limits_count_as_in_a_run_on_a_gpu(self):
        words = ["train", "--preset", "gpt2-xl", "--dtype", "bf16", "--layout", "dp8.z1", "--backend", "simulated:eos"]
        seconds = []
        for number, place in enumerate(([], ["--place", "optimizer=host"], ["--place", "optimizer=cpu"],
                                        ["--place", "optimizer=host", "--update", "delayed"])):
            folder = os.path.join(self.folder, str(number))
            self.run_it(*words, *place, "--run-dir", folder)
            record = glob.glob(os.path.join(folder, "*", "run.h5"))[0]
            seconds.append(self.rows_of("report", record, "--group", "train")[0]["step_time"])
        self.assertLess(float(seconds[0]), float(seconds[1]))
        self.assertEqual(seconds[1], seconds[2])
        self.assertLess(float(seconds[3]), float(seconds[1]))
        self.refused(*words, "--memory-limit", "1G", says=["does not fit", "1.0 GiB"])

    def test_mistakes_are_refused_in_three_lines(self):
        self.refused("train", *model, "--layout", "dp1.tp8", "--backend", "simulated:selene",
                     says=["does not fit", "--search"])
        self.refused("train", *model, "--layout", layouts[0], "--backend", "simulated:nowhere", says=["no such machine"])
        self.refused("train", *model, "--layout", layouts[0], "--backend", "simulated:selene", "--trace-steps", "1",
                     says=["trains nothing"])
        self.refused("bench", "all_reduce", "--backend", "simulated:selene", "--ranks", "257", says=["256"])
        self.refused("bench", "all_reduce", "--backend", "simulated:selene", "--hosts", "2,2", says=["hosts of its own"])
        self.refused("bench", "all_reduce", "--backend", "simulated:selene", "--launches", "2", says=["one process"])
        self.refused("bench", "all_reduce", "--backend", "simulated:b200x", says=["no such machine"])
        self.refused("tune", "all_reduce", "--backend", "simulated:selene", says=["simulated:selene"])
        self.refused("compare", *model, "--layouts", "all", "--backend", "simulated:selene", says=["--search"])


if __name__ == "__main__":
    unittest.main()
