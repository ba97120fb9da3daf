"""Tests `chorale bench` and `chorale tune` as a user sees them: output, records, errors and exit codes."""
import glob
import io
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

import h5py
import pandas
import xarray

from programs import chorale, finish, launch, only_in_test_all, ranks, sample, spawn, start, until

mpirun = " ".join(launch)
quick = ["-n", "3", "-w", "1", "--ceiling", "no"]


def rows_of(test, result, code=0):
    test.assertEqual(result.returncode, code, result.stderr)
    return json.loads(result.stdout)


def load(file):
    with open(file) as stream:
        return json.load(stream)


class Bench(unittest.TestCase):
    def test_a_grid_on_threads_is_right_everywhere(self):
        result = start([chorale, "bench", "all", "--backend", "threads", "--ranks", "3", "--algorithm", "all", "--dtype",
                        "f32,bf16,u8",
                        "--op", "sum,prod,avg,min", "--root", "all", "-b", "0", "-e", "4K", "-f", "16", "--format", "json",
                        *quick])
        rows = rows_of(self, result)
        self.assertGreater(len(rows), 1000)
        for row in rows:
            self.assertEqual(row["wrong"], None if row["op"] == "barrier" else 0, row)
        self.assertEqual({row["bytes"] for row in rows if row["op"] == "all_reduce" and row["dtype"] == "f32"},
                         {0, 4, 64, 1024, 4096})
        self.assertEqual({row["count"] for row in rows if row["op"] == "all_gather" and row["dtype"] == "u8"},
                         {0, 3, 15, 255, 4095})
        self.assertEqual({row["root"] for row in rows if row["op"] == "reduce"}, {0, 1, 2})
        self.assertEqual({row["root"] for row in rows if row["op"] == "all_to_all"}, {-1})
        self.assertIn("skipped: all_gather recursive_doubling on threads: does not fit 3 ranks\n", result.stderr)
        for row in rows:  # the number of bytes sent must follow from the schedules
            self.assertEqual(row["bytes_sent"], row["bytes_predicted"], row)

    def test_a_row_says_everything(self):
        result = start([chorale, "bench", "--backend", "threads", "-b", "1M", "-e", "1M", "--format", "json", "-n", "25"])
        for row, in_place in zip(rows_of(self, result), [False, True]):
            self.assertEqual([row[key] for key in ("op", "backend", "algorithm", "ranks", "dtype", "redop", "bytes",
                                                   "in_place")],
                             ["all_reduce", "threads", "auto", 2, "f32", "sum", 1 << 20, in_place])
            self.assertLessEqual(row["seconds_p5"], row["seconds_ci_low"])
            self.assertLessEqual(row["seconds_ci_low"], row["seconds"])
            self.assertLessEqual(row["seconds"], row["seconds_ci_high"])
            self.assertLessEqual(row["seconds_ci_high"], row["seconds_p95"])
            self.assertLessEqual(row["seconds_p95"], row["seconds_p99"])
            self.assertEqual(row["seconds_p99"], row["seconds_max"])  # 25 calls have no 99th percentile of their own
            self.assertAlmostEqual(row["algbw_bytes_per_s"] * row["seconds"], 1 << 20, delta=1e3)
            # for two ranks, the bus bandwidth factor 2 (p − 1) / p is 1
            self.assertEqual(row["busbw_bytes_per_s"], row["algbw_bytes_per_s"])
            self.assertGreater(row["predicted_seconds"], 0)
            self.assertGreater(row["ceiling_seconds"], 0)
            self.assertEqual(row["hosts"], 1)
            self.assertEqual(row["oversubscribed"], int(len(os.sched_getaffinity(0)) < 2))

    def test_one_rank_sends_nothing_and_has_no_bandwidth(self):
        words = [chorale, "bench", "all_reduce", "--backend", "shm", "-b", "8K", "-e", "8K", "-n", "3", "-w", "1"]
        for row in rows_of(self, start([*words, "--format", "json"])):
            self.assertEqual(row["ranks"], 1)
            self.assertGreaterEqual(row["seconds"], 0)
            self.assertEqual([row[key] for key in ("algbw_bytes_per_s", "busbw_bytes_per_s", "ceiling_seconds")],
                             [None, 0, None])
        says = "# busbw is 0: it counts the bytes that cross a link between two ranks, and one rank sends nothing.\n"
        self.assertIn(says, start(words).stdout)
        self.assertNotIn(says, ranks(2, *words).stdout)

    def test_prices_that_were_not_measured_here_are_called_so(self):
        says = "# predicted: not calibrated, by the typical prices of threads; to measure them here: "
        with tempfile.TemporaryDirectory() as folder:
            machine = f"{folder}/machine.toml"
            default = ["--backend", "threads", "-e", "8K", "-n", "3", "-w", "1"]
            untuned = start([chorale, "bench", "all_reduce", *default, "-b", "1K", "--ceiling", "0"], XDG_CACHE_HOME=folder)
            words = [*default, "--machine", machine]
            self.assertIn(says, untuned.stdout)
            self.assertIn("tune --calibrate --backend threads\n", untuned.stdout)
            self.assertRegex(untuned.stdout, r"(?m)^all_reduce of f32, sum, 2 ranks, threads, in place\n"
                                             r" *bytes  algorithm .* algbw +busbw +predicted +p95 +p99 +max\n"
                                             r" +by auto +us +± % +GB/s +GB/s +us +us +us +us\n *1024  \w+ ")
            tuned = start([chorale, "tune", "all_reduce", "--calibrate", *words])
            self.assertEqual(tuned.returncode, 0, tuned.stderr)
            self.assertRegex(tuned.stdout,
                             r"(?m)^threads +2 ranks of a host: latency .* half of its \d+ calls are predicted within ")
            self.assertIn(f"written to {machine}", tuned.stdout)
            told = start([chorale, "bench", "all_reduce", *words, "-b", "1K", "--ceiling", "0"])
            self.assertNotIn("not calibrated", told.stdout)
            self.assertRegex(told.stdout, r"(?m)^# (predicted / measured, threads on 2 ranks: half of \d+ rows within |"
                                          r"not compared: \d+ rows, before which a barrier took )")
            shown = start([chorale, "show", "all_reduce", "ring", "--ranks", "2", "--machine", machine])
            origin = (r" {8}by machine.toml, calibrated 20\d\d-\d\d-\d\d with 2 ranks( beside other programs)?, "
                      r"median error \d+ %$")
            self.assertRegex(shown.stdout, r"(?m)^time    1.0 KiB in .*, 16.0 MiB in .* of f32 on threads\n" + origin)
            for flags, says in ((["--ranks", "3"], " with 2 ranks"),
                                (["--ranks", "64"], "none: calls of more than 63 ranks are not predicted"),
                                (["--hosts", "2,2"], "no prices between hosts were measured here")):
                shown = start([chorale, "show", "all_reduce", "ring", *flags, "--machine", machine])
                self.assertIn(says, shown.stdout)
            with open(machine, "a") as file:
                file.write("\n[[level]]\nbackend = 7\n")
            wrong = start([chorale, "bench", "all_reduce", *words])
            self.assertEqual(wrong.returncode, 2)
            self.assertRegex(wrong.stderr, r"machine.toml:\d+: \[\[level\]\] backend is not a text in quotes\n")
        bare = start([chorale, "show", "all_reduce", "ring"], XDG_CACHE_HOME="/nowhere")
        self.assertIn("time    not calibrated", bare.stdout)
        self.assertIn(" -n 4 ", bare.stdout.splitlines()[-1])

    def test_a_file_that_was_named_must_exist_unless_it_is_about_to_be_written(self):
        with tempfile.TemporaryDirectory() as folder:
            quickly = ["all_reduce", "--backend", "threads", "-b", "1K", "-e", "1K", "-n", "3", "-w", "1"]
            for command, option in (("bench", "--machine"), ("bench", "--tuning"), ("tune", "--machine")):
                refused = start([chorale, command, *quickly, option, f"{folder}/typo"], XDG_CACHE_HOME=folder)
                self.assertEqual((refused.returncode, refused.stderr.count("\n")), (2, 3), refused.stderr)
                self.assertRegex(refused.stderr, rf"\n  {folder}/typo: [Nn]o such file")
            self.assertEqual(os.listdir(folder), [])
            for words in sample((["--tuning", f"{folder}/new.json"], ["--calibrate", "--machine", f"{folder}/new.toml"]), 2):
                self.assertEqual(start([chorale, "tune", *quickly, *words], XDG_CACHE_HOME=folder).returncode, 0)
                self.assertTrue(os.path.exists(words[-1]))

    @only_in_test_all("three calibrations more; \"prices that were not measured…\" makes one")
    def test_a_calibration_measures_the_sizes_that_were_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            words = [chorale, "tune", "all_reduce", "--calibrate", "--backend", "threads", "--algorithm", "ring",
                     "--in-place", "no", "-e", "5K", "-n", "1", "-w", "1"]
            # sizes of the three runs: 2, 4, 5 KiB; 1, 5 KiB; 64, 320, 1600, … bytes
            for sizes, rows in ((["-b", "2K", "-f", "2"], 3), ([], 2), (["-b", "64"], 4)):
                machine = f"{folder}/{rows}-{len(sizes)}.toml"
                result = start([*words, *sizes, "--machine", machine])
                self.assertEqual(result.returncode, 0, result.stderr)
                with open(machine) as file:
                    self.assertIn(f"\nrows = {rows}\n", file.read())
            refused = start([*words, "--dtype", "bf16", "--machine", f"{folder}/none.toml"])
            self.assertEqual((refused.returncode, refused.stderr.count("\n")), (2, 3), refused.stderr)
            self.assertIn("dtype = bf16 (command line)", refused.stderr)
            self.assertFalse(os.path.exists(f"{folder}/none.toml"))

    def test_a_calibration_finds_the_longest_staged_message(self):
        with tempfile.TemporaryDirectory() as folder:
            machine = f"{folder}/machine.toml"
            result = ranks(2, chorale, "tune", "all_reduce", "--calibrate", "--backend", "shm", "--algorithm", "ring",
                           "--in-place", "no", "-e", "5K", "-n", "1", "-w", "1", "--machine", machine)
            self.assertEqual(result.returncode, 0, result.stderr)
            with open(machine) as file:
                found = re.search(r"(?m)^staged_bytes = (\d+)  # B$", file.read())
            if "no process_vm" not in start([chorale, "info"]).stdout:
                self.assertIn(int(found[1]), [0, *(512 << i for i in range(9))])
                self.assertIn("messages of ordinary memory are staged up to", result.stdout)
            else:
                self.assertIsNone(found)

    def test_one_rank_cannot_be_calibrated(self):
        result = start([chorale, "tune", "all", "--calibrate", "--backend", "shm"])
        self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 3), result.stderr)
        self.assertIn("one rank sends nothing", result.stderr)

    def test_more_ranks_than_can_be_predicted_are_not_calibrated(self):
        result = start([chorale, "tune", "all_reduce", "--calibrate", "--backend", "threads", "--ranks", "64"])
        self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 3), result.stderr)
        self.assertIn("at most 63 ranks\n  threads has 64 ranks", result.stderr)

    def test_every_sample_of_every_rank_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/bench.h5"
            command = [chorale, "bench", "all_reduce", "broadcast", "--backend", "threads", "-e", "64", "--out", file,
                       *quick]
            self.assertEqual(start(command).returncode, 0)
            self.assertEqual(os.listdir(folder), ["bench.h5"])
            with h5py.File(file) as record:
                self.assertEqual(record.attrs["status"].decode().rstrip("\0"), "ok")
                self.assertRegex(record.attrs["run_id"].decode(), r"^\d{4}-\d\d-\d\dT[\d-]+-bench-[0-9a-f]{4}$")
            series = xarray.open_dataset(file, group="series", engine="netcdf4")
            samples = xarray.open_dataset(file, group="samples", engine="netcdf4")
            self.assertEqual(series.sizes["row"], 6)  # 2 sizes; all_reduce in and out of place, broadcast in place
            self.assertEqual(samples.sizes["sample"], 6 * 3 * 2)
            slowest = samples.time.to_series().groupby([samples.series.values, samples.repetition.values]).max()
            for row in range(6):
                self.assertAlmostEqual(float(slowest[row].median()), float(series["median"][row]), places=12)
                self.assertEqual(float(slowest[row].max()), float(series["max"][row]))
            again = start(command)
            self.assertEqual(again.returncode, 2)
            self.assertIn("nothing is overwritten", again.stderr)

    def test_processes_on_every_backend_that_is_there(self):
        result = ranks(3, chorale, "bench", "all", "--backend", "all", "--algorithm", "all", "-b", "0", "-e", "1K", "-f",
                       "64", "--format", "json", *quick)
        rows = rows_of(self, result)
        self.assertEqual({row["wrong"] for row in rows if row["op"] != "barrier"}, {0})
        self.assertIn("native", {row["algorithm"] for row in rows if row["backend"] == "mpi"})
        self.assertNotIn("native", {row["algorithm"] for row in rows if row["backend"] == "shm"})
        self.assertEqual({row["bytes_sent"] for row in rows if row["algorithm"] == "native"}, {None})
        self.assertEqual(result.stderr.count("skipped: threads: "), 1)

    def test_sizes_go_from_the_first_to_the_last(self):
        for sizes, expected in ((["-b", "8", "-e", "1M"], [8, 64, 512, 4096, 32768, 262144, 1 << 20]),
                                (["-b", "1K", "-e", "3K", "-f", "2"], [1024, 2048, 3072]),
                                (["-b", "1K", "-e", "4K", "-f", "2"], [1024, 2048, 4096]),
                                (["-b", "64", "-e", "1K", "-f", "1"], [64])):
            result = start([chorale, "bench", "--backend", "threads", "--in-place", "no", "--format", "json", *sizes,
                            *quick])
            self.assertEqual([row["bytes"] for row in rows_of(self, result)], expected)

    def test_a_table_says_what_auto_chose_and_what_varies(self):
        result = ranks(2, chorale, "bench", "--backend", "shm", "-e", "1M", "-n", "3", "-w", "1")
        tables = [line for line in result.stdout.splitlines() if not line.startswith("#")]
        self.assertEqual(tables[0], "all_reduce of f32, sum, 2 ranks, shm, out of place")
        self.assertEqual(tables[1].split(), "bytes algorithm time calls algbw busbw predicted ceiling p95 p99 max".split())
        self.assertEqual(tables[2].split(), "by auto us ± % GB/s GB/s us us us us us".split())
        rows = [line.split() for line in tables[3:] if line.strip()[:1].isdigit()]
        self.assertEqual([int(row[0]) for row in rows[:7]], [8 ** n for n in range(1, 7)] + [1 << 20])
        for row in rows:
            self.assertRegex(row[1], "^[a-z_]+$")
            self.assertNotEqual(row[1], "auto")
        self.assertIn("# results were checked: every element is right\n", result.stdout)
        self.assertIn("# calls ±: half the 95 % interval of this median. It is the spread of the calls of\n"
                      "#   this launch; another launch can differ by more: bench --launches 6\n", result.stdout)

    def test_rows_of_one_size_stand_together_and_are_compared_with_the_first(self):
        result = ranks(2, chorale, "bench", "all_reduce", "--backend", "shm,mpi", "--algorithm", "ring,direct", "-b", "1K",
                       "-e", "4K", "-f", "4", "--in-place", "no", *quick)
        title, names, units, *rows = [line for line in result.stdout.splitlines() if not line.startswith("#")]
        self.assertEqual(title, "all_reduce of f32, sum, 2 ranks, out of place")
        self.assertEqual(names.split(), "bytes backend algorithm time calls algbw busbw time / p95 p99 max".split())
        self.assertEqual(units.split(), "us ± % GB/s GB/s shm ring us us us".split())
        cells = [row.split() for row in rows]
        self.assertEqual([row[:3] for row in cells], [[size, backend, algorithm] for size in ("1024", "4096")
                                                      for backend in ("shm", "mpi") for algorithm in ("ring", "direct")])
        for row in cells:
            first = cells[0 if row[0] == "1024" else 4]
            self.assertAlmostEqual(float(row[-4]), float(row[3]) / float(first[3]), delta=0.02 * float(row[-4]) + 0.006)
            self.assertEqual(row[-2:], [row[-3]] * 2)  # of three calls, each tail is the slowest
        self.assertEqual([cells[0][-4], cells[4][-4]], ["1.00", "1.00"])

    def test_pandas_reads_the_tables_as_bytes_and_seconds(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [chorale, "bench", "all_reduce", "barrier", "--backend", "threads", "-b", "1K", "-e", "1M", "-f", "32",
                       *quick, "--format", "csv"]
            result = start([*command, "--out", f"{folder}/tables"])
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout, f"{folder}/tables/all_reduce.csv\n{folder}/tables/barrier.csv\n")
            table = pandas.read_csv(f"{folder}/tables/all_reduce.csv")
            self.assertEqual(list(table.bytes), [1024, 32768, 1 << 20] * 2)
            self.assertEqual(list(table.in_place), [False] * 3 + [True] * 3)
            for column in ("seconds", "seconds_ci_low", "algbw_bytes_per_s", "busbw_bytes_per_s", "predicted_seconds",
                           "barrier_seconds"):
                self.assertEqual(table[column].dtype, float, column)
            self.assertTrue(((table.seconds > 1e-9) & (table.seconds < 100)).all())
            for row in table.itertuples():
                self.assertAlmostEqual(row.bytes / row.seconds / row.algbw_bytes_per_s, 1, delta=1e-3)
            self.assertEqual(list(pandas.read_csv(f"{folder}/tables/barrier.csv").bytes), [0])
            printed = pandas.read_csv(io.StringIO(start(command).stdout))
            self.assertEqual(list(printed.columns), list(table.columns))
            self.assertEqual(list(printed.op), ["all_reduce"] * 6 + ["barrier"])
            as_json = rows_of(self, start([*command[:-1], "json"]))
            self.assertEqual([list(row) for row in as_json], [list(table.columns)] * 7)
            again = start([*command, "--out", f"{folder}/tables"])
            self.assertEqual((again.returncode, again.stderr.count("\n")), (2, 3), again.stderr)
            self.assertIn(f"error: the folder has a table already\n  {folder}/tables/all_reduce.csv\n", again.stderr)

    def test_other_forms(self):
        common = [chorale, "bench", "all_gather", "--backend", "threads", "-e", "64", *quick]
        self.assertEqual(len(start([*common, "--format", "csv"]).stdout.splitlines()), 5)
        notes = start([*common, "--format", "md"]).stdout
        self.assertTrue(notes.startswith("### all_gather of f32, 2 ranks, threads, out of place\n\n"
                                         "| bytes | algorithm by auto | time us |"), notes)
        for flags in (["--cache", "cold"], ["--memory", "heap"], ["--chunks", "1,3", "--algorithm", "ring"],
                      ["--compare-calls", "no"]):
            self.assertEqual({row["wrong"] for row in rows_of(self, start([*common, *flags, "--format", "json"]))}, {0})
        self.assertEqual({row["wrong"] for row in rows_of(self, start([*common, "--check", "no", "--format", "json"]))},
                         {None})
        self.assertIn("# results were not checked\n", start([*common, "--check", "off"]).stdout)

    def test_what_cannot_be_is_refused_and_what_is_not_there_is_skipped(self):
        for words, says in ((["--backend", "smh"], 'no backend "smh"'),
                            (["al_reduce"], 'did you mean "all_reduce"?'),
                            (["--algorithm", "rnig"], 'did you mean "ring"?'),
                            (["-b", "9", "-e", "8"], "the largest size is below the smallest")):
            result = start([chorale, "bench", *words])
            self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
            self.assertIn(says, result.stderr)
        for count in (1, 2):  # the backend "threads" cannot connect two processes
            if count == 2:
                result = ranks(count, chorale, "bench", "broadcast", "--backend", "threads", *quick)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn("error: no requested backend can be used\n  threads: its ranks are threads of one process: "
                              "start it without a launcher, with --ranks N\n  these work here: ", result.stderr)
                self.assertNotIn("skipped", result.stderr)
            result = ranks(count, chorale, "bench", "broadcast", "--backend", "shm", "--algorithm", "native", *quick)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertEqual(result.stderr.count("shm has no native broadcast"), 1)
            self.assertEqual(result.stderr.count("nothing remains to be measured"), 1)

    def test_launches_are_one_record_and_each_has_an_order_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [chorale, "bench", "all_reduce", "all_gather", "--backend", "shm,mpi", "-b", "64", "-e", "1K", "-f",
                       "4", "--format", "json", *quick,
                       "--launches", "3", "--ranks-per-launch", "2", "--seed", "5", "--out", f"{folder}/all.h5"]
            result = start(command, MPIRUN=mpirun)
            rows = rows_of(self, result)
            self.assertEqual(os.listdir(folder), ["all.h5"])
            self.assertRegex(result.stderr, r"(?m)^bench  the first launch took .*; at this pace all 3 take .*$")
            self.assertRegex(result.stderr, r"bench  3/3 in ")
            self.assertIn(f"\nthe record: {folder}/all.h5\n", result.stderr)
            self.assertEqual({(row["launches"], row["repetitions"], row["wrong"], row["ranks"]) for row in rows},
                             {(3, 9, 0, 2)})
            turns, medians = [], []
            with h5py.File(f"{folder}/all.h5") as file:
                self.assertEqual((file.attrs["status"].decode().rstrip("\0"), file.attrs["launches"]), ("ok", 3))
                self.assertEqual(sorted(file["runs"]), ["launch-1", "launch-2", "launch-3"])
                for name, order in zip(file["launches/id"].asstr(), file["launches/order"]):
                    run = file[f"runs/{name}"]
                    self.assertIn(f"order = {order}\n", run["config/toml"].asstr()[()])
                    self.assertEqual(run.attrs["jobsize"], 2)
                    turns.append(list(run["series/turn"]))
                    medians.append(list(run["series/median"]))
                    self.assertEqual(list(run["series/bytes"]),
                                     [row["bytes"] for row in rows])  # sorted by size, whatever the order of measurement
                orders = list(file["launches/order"])
            self.assertEqual([sorted(turn) for turn in turns], [list(range(len(rows)))] * 3)
            self.assertEqual(len({tuple(turn) for turn in turns}), 3)
            self.assertNotIn(list(range(len(rows))), turns)
            for row, *times in zip(rows, *medians):
                self.assertAlmostEqual(row["seconds"] / sorted(times)[1], 1, places=3)
                self.assertAlmostEqual(row["seconds_ci_high"] / max(times), 1, places=3)
            again = start([*command[:-1], f"{folder}/again.h5"], MPIRUN=mpirun)
            self.assertEqual(again.returncode, 0, again.stderr)
            with h5py.File(f"{folder}/again.h5") as file:  # the same seed gives the same order of measurement
                self.assertEqual(list(file["launches/order"]), orders)

    def test_launches_end_with_a_verdict_and_say_that_no_record_was_kept(self):
        words = [chorale, "bench", "--backend", "shm", "--algorithm", "ring,direct", "-b", "64", "-e", "64", "--in-place",
                 "no", *quick, "--launches", "2"]
        result = start(words, MPIRUN=mpirun)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^ *bytes +algorithm +time +launches .*\n +us +± % ")
        self.assertRegex(result.stdout, r"(?m)^operation +bytes +fastest .* significant\nall_reduce +64 +shm \w+ .* \?\n"
                                        r"shm \w+ has the lowest median in 1 of 1 cells, the most of any\. Too few runs")
        self.assertIn("\nno record was kept; to keep every sample: --out FILE.h5\n", result.stdout)

    def test_launches_of_two_programs_alternate_and_are_partners(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [chorale, "bench", "--backend", "shm", "-b", "64", "-e", "64", *quick, "--out", f"{folder}/new.h5"]
            environment = {"CHORALE_LAUNCHES": "2",
                           "CHORALE_AGAINST": os.path.realpath(chorale)}  # a launch must not start further launches
            result = start(command, MPIRUN=mpirun, **environment)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(sorted(os.listdir(folder)), ["new.against.h5", "new.h5"])
            self.assertIn("# 2 launches of 2 ranks; time: the median of the launches\n"
                          "# launches ±: half the range of the launches\n", result.stdout)
            self.assertRegex(result.stdout, r"(?m)^A: the other program, B: this one\nmetric .* verdict$")
            self.assertRegex(result.stdout, r"(?m)^all_reduce shm auto f32 64 B, 2 ranks: latency .* too few runs to tell$")
            self.assertIn(f"\nthe records: {folder}/new.h5, {folder}/new.against.h5\n", result.stdout)
            with h5py.File(f"{folder}/new.h5") as one, h5py.File(f"{folder}/new.against.h5") as other:
                self.assertEqual(one.attrs["session"], other.attrs["session"])
                self.assertEqual(list(one["launches/order"]), list(other["launches/order"]))
            compared = start([chorale, "report", f"{folder}/new.against.h5", f"{folder}/new.h5", "--compare"])
            self.assertIn("2 pairs", compared.stdout)

    def test_launches_that_cannot_be_are_refused_in_three_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            out = ["--out", f"{folder}/new.h5"]
            for words, says in ((["--launches", "2"],
                                 "the launcher of the ranks cannot be started\n  /nowhere/mpirun: No such file or "
                                 "directory; this program was built with "),
                                (["--against", chorale], "--against needs --launches"),
                                (["--launches", "2", "--against", chorale], "--against needs --out"),
                                (["--launches", "2", "--against", "/nowhere/chorale", *out], "no such program"),
                                (["--launches", "2", "-b", "9", "-e", "8"], "the largest size is below the smallest")):
                result = start([chorale, "bench", *words], MPIRUN="/nowhere/mpirun --with an-option")
                self.assertEqual((result.returncode, result.stdout, len(result.stderr.splitlines())), (2, "", 3),
                                 result.stderr)
                self.assertIn(f"error: {says}", result.stderr)
            inside = ranks(2, chorale, "bench", "--launches", "2")
            self.assertEqual((inside.returncode, inside.stdout), (2, ""), inside.stderr)
            self.assertEqual(inside.stderr.count("error: --launches starts the ranks itself"), 1)
            failed = start([chorale, "bench", "--backend", "shm", "--algorithm", "native", "--launches", "2", *out],
                           MPIRUN=mpirun)
            self.assertEqual((failed.returncode, failed.stdout), (2, ""), failed.stderr)
            self.assertIn("error: launch 1 of 2 failed with exit code 2\n  nothing remains to be measured\n  run "
                          "it by hand: ", failed.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_a_benchmark_that_is_told_to_stop_keeps_the_rows_that_are_complete(self):
        for own in sample(([*launch, "-n", "2", chorale, "bench", "--backend", "shm"],
                           [chorale, "bench", "--backend", "threads"]), 2):
            with self.subTest(own[-1]), tempfile.TemporaryDirectory() as folder:
                with open(f"{folder}/errors", "w") as errors, open(f"{folder}/output", "w") as output:
                    process = spawn([*own, "all", "--algorithm", "all", "-f", "2", "--out", f"{folder}/new.h5"],
                                    stdout=output, stderr=errors)

                def text(name):
                    with open(f"{folder}/{name}") as stream:
                        return stream.read()
                until(lambda: any(int(done) >= 3 for done in re.findall(r"bench \w+  (\d+)/", text("errors"))), process)
                # After SIGINT, Open MPI kills the ranks within two seconds. On a busy machine, a single row can take longer.
                process.send_signal(signal.SIGINT if own[0] == chorale else signal.SIGUSR1)
                finish(process)
                self.assertNotEqual(process.returncode, 0)
                stopped = re.search(r"error: stopped\n  (\d+) of (\d+) rows were measured\n", text("errors"))
                self.assertTrue(stopped, text("errors"))
                rows = int(stopped[1])
                self.assertTrue(3 <= rows < int(stopped[2]), stopped)
                printed = re.findall(r"(?m)^ *\d+  .*$", text("output"))
                self.assertEqual(len(printed), rows, text("output"))
                with h5py.File(f"{folder}/new.h5") as file:
                    self.assertEqual(file.attrs["status"].decode().rstrip("\0"), "stopped")
                    self.assertEqual(len(file["series/op"]), rows)
                    self.assertEqual(sorted(file["series/turn"]), list(range(rows)))

    def test_launches_that_are_told_to_stop_keep_those_that_are_complete(self):
        for twin in ([], ["--against", chorale]):
            with self.subTest(twin), tempfile.TemporaryDirectory() as folder:
                command = [chorale, "bench", "--backend", "shm", "-b", "1K", "-e", "1K", *quick, "--launches", "999", *twin,
                           "--out", f"{folder}/new.h5"]
                process = spawn(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, "MPIRUN": mpirun})
                programs = 2 if twin else 1  # each program writes a file
                until(lambda: len(glob.glob(f"{folder}/.chorale-*/*/launch-3.txt")) == programs, process)
                process.send_signal(signal.SIGINT)
                output, errors = finish(process)
                self.assertEqual(process.returncode, 1, errors)
                stopped = re.search(rf"error: stopped\n  (\d+) of {999 * programs} launches were done\n", errors)
                done = int(stopped[1]) // programs
                self.assertGreaterEqual(done, 2)
                self.assertIn(f"# {done} launches of 2 ranks; ", output)
                self.assertEqual(len(os.listdir(folder)), programs)
                with h5py.File(f"{folder}/new.h5") as file:
                    self.assertEqual((file.attrs["status"].decode().rstrip("\0"), file.attrs["launches"]), ("stopped", done))
                    self.assertEqual(len(file["runs"]), done)

    def test_a_signal_ends_the_launches_and_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [chorale, "bench", "--backend", "shm", "-n", "1000000", "-b", "1K", "-e", "1K", "--launches", "9",
                       "--out", f"{folder}/new.h5"]
            process = spawn(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "MPIRUN": mpirun})
            until(lambda: glob.glob(f"{folder}/.chorale-*/this/launch-1.txt"), process)
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
            output, errors = finish(process)
            self.assertEqual((process.returncode, output), (1, ""), errors)
            self.assertIn("error: stopped\n  0 of 9 launches were done\n", errors)
            self.assertEqual(os.listdir(folder), [])

    def test_tune_writes_a_table_that_says_why(self):
        with tempfile.TemporaryDirectory() as folder:
            table = f"{folder}/deep/tuning.json"
            command = [chorale, "tune", "--backend", "threads", "-e", "2K", "-n", "5", "--tuning", table]
            result = start([*command, "all_reduce", "all_gather"])
            self.assertEqual(result.returncode, 0, result.stderr)
            tuned = load(table)
            self.assertEqual(len(tuned["choices"]), 2 * 2 * 3)
            for choice in tuned["choices"]:
                self.assertEqual(choice["hosts"], 1)
                if choice["ratio"] < 1:  # below 1, the usual algorithm is kept
                    self.assertGreaterEqual(choice["ratio_high"], 1, choice)
                self.assertNotEqual(choice["runner_up"], choice["algorithm"])
            self.assertIn("times as long", result.stdout)
            self.assertEqual(start([*command, "broadcast"]).returncode, 0)  # adds to the table
            self.assertEqual({choice["op"] for choice in load(table)["choices"]}, {"all_reduce", "all_gather", "broadcast"})
            pretended = start([*command, "broadcast", "--ranks", "2", "--hosts", "1,1"])
            self.assertIn(" 2 ranks on 2 hosts, ", pretended.stdout, pretended.stderr)
            self.assertEqual({choice["hosts"] for choice in load(table)["choices"] if choice["op"] == "broadcast"}, {1, 2})
            with open(table, "w") as broken:
                broken.write("{}")
            refused = start(command)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("not a tuning table", refused.stderr)

    def test_tune_that_is_told_to_stop_writes_what_is_answered(self):
        for own in sample(([chorale, "tune", "--backend", "threads"],
                           [*launch, "-n", "2", chorale, "tune", "--backend", "shm"]), 2):
            with self.subTest(own[-1]), tempfile.TemporaryDirectory() as folder:
                table, said = f"{folder}/tuning.json", f"{folder}/said"
                before = [*own, "--tuning", table, "all_reduce", "-b", "4", "-e", "4", "-n", "3"]
                self.assertEqual(start(before).returncode, 0)
                with open(said, "w") as errors:
                    process = spawn([*own, "--tuning", table, "all", "-f", "2"], stdout=subprocess.DEVNULL, stderr=errors)

                def text():
                    with open(said) as stream:
                        return stream.read()
                # For each collective and size, `tune` measures all algorithms one after the other. There are fewer than
                # twenty algorithms, so after twenty rows, `tune` has made at least one choice.
                until(lambda: any(int(done) >= 20 for done in re.findall(r"bench \w+  (\d+)/", text())), process)
                process.send_signal(signal.SIGINT)
                finish(process)
                self.assertNotEqual(process.returncode, 0)
                stopped = re.search(r"error: stopped\n  (\d+) of (\d+) rows were measured: (.* at .*B)\n", text())
                self.assertTrue(stopped, text())
                self.assertLess(int(stopped[1]), int(stopped[2]))
                choices = load(table)["choices"]
                asked = [(choice["op"], choice["in_place"], choice["bytes"]) for choice in choices]
                self.assertEqual(len(set(asked)), len(asked))
                self.assertIn(("all_reduce", False, 4), asked)  # the first call of tune chose these
                self.assertGreater(len(asked), 2)
                # Only the collectives in the message have new choices. A name in the message also says whether the
                # collective is in place.
                told = {kind.split(" on ")[0] for kind in stopped[3].split("; ")}
                answered = {op + " in place" * in_place for op, in_place, bytes in asked}
                before = {"all_reduce", "all_reduce in place"}
                self.assertEqual(answered - before, told - before)
                for choice in choices:
                    self.assertLessEqual(choice["ratio_low"], choice["ratio"])
                    self.assertGreaterEqual(choice["ratio_high"], choice["ratio"])


if __name__ == "__main__":
    unittest.main()
