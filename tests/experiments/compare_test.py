"""Tests `chorale compare` as a user sees it. Covers the table and the record of all runs, the report of all mistakes in a
suite, and resuming after a kill."""
import csv
import glob
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import h5py
import xarray

from programs import chorale, finish, launch, only_in_test_all, ranks, rest_of, sample, spawn, start, thorough, until

small = "experiments/suites/small.toml"


def groups_of(file):
    found = ["/"]
    with h5py.File(file) as record:
        record.visititems(lambda name, item: found.append(f"/{name}") if isinstance(item, h5py.Group) else None)
    return found


class Compare(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def compare(self, *words, processes=2):
        return ranks(processes, chorale, "compare", *words, "--run-dir", self.folder)

    def suite(self, text):
        path = os.path.join(self.folder, "suite.toml")
        with open(path, "w") as file:
            file.write(text)
        return path

    def test_models_that_differ_only_in_their_mlps_are_rows_of_their_own_with_the_share_they_drop(self):
        model = "preset = 'tiny'\ntrain-iters = 2\nno-save = true\nthreads = 1\n"
        suite = self.suite(f"ranks = 1\nrepetitions = 1\n[[runs]]\n{model}vary.ffn-hidden-size = [96, 192]\n"
                           f"[[runs]]\n{model}num-experts = 4\nvary.moe-expert-capacity-factor = ['dropless', 0.5]\n")
        result = self.compare(suite, processes=1)
        self.assertEqual(result.returncode, 0, result.stderr)
        for label in ("num-experts 0, ffn-hidden-size 96 ", "num-experts 0, ffn-hidden-size 192 ",
                      "dropless, num-experts 4 ", "moe-expert-capacity-factor 0.5, num-experts 4 "):
            self.assertIn(label, result.stdout)
        self.assertRegex(result.stdout, r"(?m)^layout .* bubble  dropped  held-out loss$")
        shares = dict(re.findall(r"(?m)^.*?(dropless|num-experts 0|factor 0.5).* ([\d.]+ %|-) +\S+$", result.stdout))
        self.assertEqual([shares["num-experts 0"], shares["dropless"]], ["-", "-"], result.stdout)
        self.assertGreater(float(shares["factor 0.5"].removesuffix(" %")), 40)  # an expert keeps at most half its share

    def test_a_suite_is_a_table_and_a_record_that_others_read(self):
        result = self.compare(small)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Which of three layouts trains tiny fastest on two ranks?", result.stdout)
        self.assertIn("tp2", result.stdout)
        self.assertIn("report.html", result.stdout)
        self.assertRegex(result.stdout, r"(?m)^layout +runs +tokens/s +range of the runs +relative to the fastest")
        self.assertRegex(result.stdout, r"(?m)^\S+ has the highest median, .*\. Too few runs to tell whether they differ "
                                        r"\(\?\): 2 of each; 6 repetitions in turns are needed\. "
                                        r"(On the Pareto front |\S+ also needs the least memory\.)")  # if it is fastest, too
        for word in ("~", "significant", "is the fastest"):
            self.assertNotIn(word, result.stdout)
        file = f"{self.folder}/latest/run.h5"
        self.assertTrue(os.path.exists(f"{self.folder}/latest/report.html"))
        for engine in ("h5netcdf", "netcdf4"):
            for group in sample(groups_of(file), 7):
                xarray.open_dataset(file, group=group, engine=engine).close()
        self.assertEqual(subprocess.run(["ncdump", "-h", file], stdout=subprocess.DEVNULL).returncode, 0)
        with xarray.open_dataset(file, group="summary") as summary:
            self.assertEqual(len(summary.id), 10)  # 5 runs × 2 repetitions
            self.assertEqual(set(summary.status.values), {"ok"})
            self.assertEqual(sorted(set(summary.ranks.values)), [1, 2])
            trained = summary.command.values == "train"
            self.assertTrue((summary.tokens_per_s.values[trained] > 0).all())
            self.assertTrue((summary.layout.values == "tp2").sum() == 2)
        with h5py.File(file) as record:  # the suite's record repeats all values of each run's record
            for run in glob.glob(f"{self.folder}/latest/*-r1/run.h5"):
                name = os.path.basename(os.path.dirname(run))
                with h5py.File(run) as alone:
                    for path in ("train/loss", "series/series"):
                        if path in alone:
                            self.assertEqual(list(alone[path]), list(record[f"runs/{name}/{path}"]))
            self.assertEqual(record["runs/dp2-r1/phases/phase_time"].dims[1][0].name, "/runs/dp2-r1/rank")

    def test_all_mistakes_of_a_suite_are_said_before_anything_runs(self):
        suite = self.suite('questions = "?"\n\n[[runs]]\ncommand = "trian"\n\n[[runs]]\npreset = "tiny"\ntrain-itres = 3\n'
                           'lr = "much"\n\n[[runs]]\npreset = "tiny"\nvary.layout = ["dp2", "tp5"]\n\n[[runs]]\nranks = 3\n'
                           'data = "nowhere.bin"\n\n[[runs]]\nrun-dir = "x"\nlr = 1\nvary.lr = [1, 2]\n\n'
                           '[[runs]]\npreset = "tiny"\nvary.ranks = [1, 0]\nlr = [[1]]\n')
        result = self.compare(suite)
        self.assertEqual(result.returncode, 2, result.stderr)
        for says in ("nothing was run: the suite has 11 mistakes", f'{suite}:1: unknown key "questions"',
                     ':3: unknown command "trian"', ':8: unknown', "train-iters",
                     ":9: ", "tp5", f"needs 3 ranks, 2 were started: mpirun -n 3 {chorale} compare {suite}\n",
                     ":15: train_2: the batch does not divide evenly; dp3",  # dp3, the layout for 3 ranks
                     "run-dir cannot be set for a run", "lr is given twice, or is both fixed and varied",
                     ':27: "lr" cannot be a list of lists'):
            self.assertIn(says, result.stderr)
        self.assertEqual(os.listdir(self.folder), ["suite.toml"])
        many = self.compare(self.suite('[[runs]]\npreset = "tinyy"\nlayuot = "dp2"\n\n'
                                       '[[runs]]\npreset = "tiny"\nlayout = "dp3"\ntrain-iters = -4\n\n'
                                       '[[runs]]\ncommand = "bnch"\n\n[[runs]]\npreset = "tiny"\nlayout = "tp5"\n'))
        self.assertEqual(many.returncode, 2, many.stderr)
        for says in ("the suite has 5 mistakes\n", ':2: unknown preset "tinyy"', ":3: unknown", 'did you mean "layout"?',
                     ":8: ", ':10: unknown command "bnch"', ":13: train", "tensor 5",  # dp3: checked after line 8
                     "\n  how the settings of 3 runs fit together is checked once these mistakes are corrected\n"):
            self.assertIn(says, many.stderr)
        for key, says in (("ops", 'did you mean "operations"?'), ("operation", 'did you mean "operations"?'),
                          ("OP", 'all_reduce is an operation, and op names operators, such as sum; op = all_reduce; name it '
                                 'without --op; in a suite: operations = "all_reduce"')):
            wrong = self.compare(self.suite(f'[[runs]]\ncommand = "bench"\n{key} = "all_reduce"\n'))
            self.assertEqual(wrong.returncode, 2, wrong.stderr)
            self.assertIn(says, wrong.stderr)
        missing = self.compare("nowhere.toml")
        self.assertIn("nowhere.toml: no such file\n  check the path given to chorale compare", missing.stderr)

    def test_a_warm_up_is_recorded_and_left_out_and_leaves_something(self):
        suite = self.suite('warm-up = 3\n\n[[runs]]\npreset = "tiny"\ntrain-iters = 5\nglobal-batch-size = 4\nthreads = 1\n'
                           'eval-samples = 4\nno-save = true\n')
        result = self.compare(suite, processes=1)
        self.assertEqual(result.returncode, 0, result.stderr)
        with h5py.File(f"{self.folder}/latest/run.h5") as record:
            speed = list(record["runs/train-r1/train/tokens_per_s"])
            self.assertEqual(len(speed), 5)
            self.assertAlmostEqual(record["summary/tokens_per_s"][0], sum(speed[3:]) / 2)
        nothing = self.compare(suite, "--warm-up", "5", processes=1)
        self.assertEqual(nothing.returncode, 2, nothing.stderr)
        self.assertIn("train-iters 5 leaves no step after a warm-up of 5", nothing.stderr)

    model = 'preset = "tiny"\nglobal-batch-size = 4\nthreads = 1\neval-samples = 4\nno-save = true\n'

    def test_a_sweep_is_judged_by_its_loss_and_seeds_are_its_repetitions(self):
        suite = self.suite(f"[[runs]]\n{self.model}train-iters = 4\nlr-warmup-iters = 0\nvary.lr = [1e-5, 3e-3]\n"
                           "vary.seed = [1, 2, 3, 4, 5, 6]\n")
        result = self.compare(suite, processes=1)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout,
                         r"(?m)^layout +seeds +held-out loss +95 % interval of the seeds +above the lowest +tokens/s")
        rows = re.findall(r"(?m)^dp1, lr (\S+) +6 +(\S+) +(\S+) to (\S+) +(\S+) ", result.stdout)
        self.assertEqual([row[0] for row in rows], ["0.003", "1e-05"], result.stdout)
        self.assertLess(float(rows[0][1]), float(rows[1][1]))
        self.assertIn("dp1, lr 0.003 has the lowest held-out loss, ", result.stdout)
        self.assertIn("all others are significantly higher (paired t-test over 6 seeds, Holm's correction, p < 0.05).",
                      result.stdout)
        with open(f"{self.folder}/latest/report.html") as page:
            self.assertIn("Held-out loss by lr", page.read())
        file = f"{self.folder}/latest/run.h5"
        with xarray.open_dataset(file, group="summary") as summary:
            self.assertEqual(sorted(summary.lr.values), [1e-5] * 6 + [3e-3] * 6)
            self.assertEqual(sorted(summary.seed.values), sorted([1, 2, 3, 4, 5, 6] * 2))
        table = start([chorale, "report", file, "--format", "csv"]).stdout.splitlines()
        rows = [dict(zip(table[0].split(","), row.split(","))) for row in table[1:]]
        self.assertEqual(sorted(float(row["lr"]) for row in rows), [1e-5] * 6 + [3e-3] * 6)
        self.assertTrue(all(float(row["eval_loss"]) > 0 for row in rows))
        whole = start([chorale, "report", file, "--format", "csv", "--all"]).stdout
        self.assertIn("# /summary\n", whole)
        by_speed = start([chorale, "report", file, "--metric", "tokens/s"]).stdout
        self.assertRegex(by_speed, r"(?m)^layout +runs +tokens/s +")
        self.assertNotIn("which also change", by_speed)  # no warning: the user asked for this comparison

    def test_a_budget_leaves_whole_seeds_out(self):
        suite = self.suite(f"[[runs]]\n{self.model}train-iters = 2\nlr-warmup-iters = 0\nvary.seed = [1, 2, 3]\n"
                           "vary.lr = [1e-3, 3e-3]\n")
        result = self.compare(suite, "--budget", "0.001s", processes=1)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("warning: the first seed will take about ", result.stderr)
        self.assertIn("1 of 3 seeds were run: another would have exceeded the budget of 1 ms; ", result.stdout)
        with xarray.open_dataset(f"{self.folder}/latest/run.h5", group="summary") as summary:
            done = summary.status.values == "ok"
            self.assertEqual((list(summary.seed.values[done]), sorted(summary.lr.values[done])), ([1, 1], [1e-3, 3e-3]))
        by_speed = self.compare(suite, "--budget", "0.001s", "--metric", "tokens/s", processes=1)  # a seed counts as a run
        self.assertNotIn("seeds were run", by_speed.stdout)

    def test_a_suite_names_its_metric_and_speed_alone_is_never_the_verdict_in_silence(self):
        runs = f'[[runs]]\n{self.model}train-iters = 2\nvary.optimizer = ["adamw", "sgd"]\n'
        result = self.compare(self.suite(runs), processes=1)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('The runs differ in optimizer, which also changes what they learn: metric = "held-out loss" judges',
                      " ".join(result.stdout.split()))
        for metric, column in (("tokens/s", "relative to the fastest"), ("held-out loss", "above the lowest")):
            result = self.compare(self.suite(f'metric = "{metric}"\n{runs}'), processes=1)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(column, result.stdout)
            self.assertNotIn("which also changes", result.stdout)
        # Repetitions with the same seed say nothing about the losses with other seeds.
        self.assertIn("(?): 1 of each; 6 are needed, for example vary.seed = [1, 2, 3, 4, 5, 6].", result.stdout)
        wrong = self.compare(self.suite(f'metric = "beauty"\n{runs}'), processes=1)
        self.assertEqual(wrong.returncode, 2, wrong.stderr)
        self.assertIn(':1: metric must be "tokens/s" or "held-out loss"', wrong.stderr)

    def test_a_warning_is_given_once_in_a_suite(self):
        suite = self.suite(f'repetitions = 2\nranks = 1\n[[runs]]\n{self.model}train-iters = 2\nbackend = "shm"\n'
                           f'place = "optimizer=file"\noffload-folder = "/dev/shm"\nvary.lr = [1e-3, 2e-3]\n')
        result = self.compare(suite)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count("warning: backend shm has no effect"), 1, result.stderr)
        self.assertLessEqual(result.stderr.count("/dev/shm is on tmpfs"), 1, result.stderr)
        rises = "warning: the learning rate still rises in 2 of 2 steps, because --lr-warmup-iters is 10 by default\n"
        self.assertEqual(result.stderr.count(rises), 1, result.stderr)
        logs = glob.glob(f"{self.folder}/latest/*-r*/log/rank-0.log")
        self.assertEqual(len(logs), 4)
        for log in logs:  # each run has its own log
            with open(log) as lines:
                self.assertIn("backend shm has no effect", lines.read())

    def test_a_suite_of_benchmarks_is_answered_too(self):
        suite = self.suite('[[runs]]\ncommand = "bench"\noperations = "all_reduce"\nbackend = "shm"\nbegin = "1K"\n'
                           'end = "8K"\nin-place = "no"\n'
                           'repetitions = 3\nvary.algorithm = ["ring", "direct"]\nvary.ranks = [1, 2]\n')
        result = self.compare(suite)
        self.assertEqual(result.returncode, 0, result.stderr)
        for count in ("1 rank", "2 ranks"):  # there is a winner for each number of ranks
            for size in (1024, 8192):
                winner = re.search(rf"(?m)^all_reduce, {count} +{size} +shm (\w+) .* shm (\w+)  ", result.stdout)
                self.assertTrue(winner, result.stdout)
                self.assertEqual({winner[1], winner[2]}, {"ring", "direct"})
        self.assertIn(" the lowest median in ", result.stdout)  # after "has" or, if several series win equally often, "have"
        self.assertIn("Too few runs to tell whether the winners differ from the others (?): 1 of each; 6 launches or "
                      "repetitions in turns are needed.", result.stdout)
        table = start([chorale, "report", f"{self.folder}/latest/run.h5", "--format", "csv"]).stdout
        self.assertEqual(table.splitlines()[0], "run,id,command,repetition,algorithm,ranks,status")
        if not thorough:  # the test "a sweep is judged…" has six runs of each
            return
        six = self.compare(suite, "--repetitions", "6")
        self.assertEqual(six.returncode, 0, six.stderr)
        self.assertIn("paired t-test over 6 repetitions, Holm's correction", six.stdout)
        self.assertNotIn("?", six.stdout)

    @only_in_test_all('"a sweep is judged…" has six of each, and statistics_test.cpp tests the verdicts')
    def test_six_repetitions_of_training_are_told_apart_or_not(self):
        suite = self.suite('repetitions = 6\n\n[[runs]]\npreset = "tiny"\ntrain-iters = 2\nglobal-batch-size = 4\n'
                           'threads = 1\n'
                           'eval-samples = 4\nno-save = true\nvary.layout = ["dp2", "tp2"]\n')
        result = self.compare(suite)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^layout +runs +tokens/s +95 % interval")
        self.assertRegex(result.stdout, r"paired t-test over 6 repetitions, Holm's correction, p [<≥] 0\.05")
        self.assertNotIn("?", result.stdout)
        for speed, says in ((1, "with enough runs are significantly slower|be distinguished from it"),
                            (10 ** 9, "mine has the highest median.* Of the others, [dt]p2 is the fastest")):
            with open(f"{self.folder}/latest/outside.csv", "w") as rows:  # two runs are too few, but only for this row
                rows.write(f"label,tokens/s\nmine,{speed}\nmine,{speed}\n")
            said = start([chorale, "report", f"{self.folder}/latest/run.h5"]).stdout
            self.assertRegex(said, says)
            self.assertIn("Too few runs to tell of mine (?): at least 6 are needed.", said)
            self.assertRegex(said, "paired t-test over 6 repetitions")
            self.assertEqual(len(re.findall(r"(?m)^(dp2|tp2|mine) .*\? ", said)), 1, said)

    def test_a_budget_leaves_whole_repetitions_out_and_they_can_be_done_later(self):
        suite = self.suite('repetitions = 3\n\n[[runs]]\npreset = "tiny"\ntrain-iters = 2\nglobal-batch-size = 4\n'
                           'threads = 1\n'
                           'eval-samples = 4\nno-save = true\nvary.layout = ["dp2", "tp2"]\n')
        result = self.compare(suite, "--budget", "0.001s")
        self.assertEqual(result.returncode, 0, result.stderr)
        whole = os.path.realpath(f"{self.folder}/latest")
        self.assertRegex(result.stderr, r"(?m)^warning: the first repetition will take about .+, the budget is 1 ms; it "
                                        r"completes all the same, because every run runs at least once$")
        self.assertIn("1 of 3 repetitions were run: another would have exceeded the budget of 1 ms; to run the others: "
                      f"mpirun -n 2 {chorale} compare --resume {whole} --budget 0\n", result.stdout)
        with h5py.File(f"{whole}/run.h5") as record:
            commands = {run.attrs["cmdline"].decode().split(" --")[0] for run in record["runs"].values()}
        self.assertEqual(commands, {f"{chorale} train"})

        def status():
            with xarray.open_dataset(f"{whole}/run.h5", group="summary") as summary:
                return list(summary.repetition.values), list(summary.status.values)

        self.assertEqual(status(), ([1, 1, 2, 2, 3, 3], ["ok"] * 2 + ["waiting"] * 4))
        with h5py.File(f"{whole}/run.h5") as record:  # every run is complete
            self.assertEqual([len(record[f"runs/{run}/train/loss"]) for run in record["runs"]], [2, 2])
        again = ranks(2, chorale, "compare", "--resume", whole)  # the original budget still applies
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("2 of 3 repetitions", again.stdout)
        self.assertEqual(status()[1], ["ok"] * 4 + ["waiting"] * 2)
        rest = ranks(2, chorale, "compare", "--resume", whole, "--budget", "0")
        self.assertEqual(rest.returncode, 0, rest.stderr)
        self.assertNotIn("budget", rest.stdout)
        self.assertEqual(status()[1], ["ok"] * 6)
        wrong = self.compare(suite, "--budget", "soon")
        self.assertEqual(wrong.returncode, 2, wrong.stderr)
        self.assertIn("a time such as 90s, 1.5m or 2h", wrong.stderr)

    def test_a_resumed_comparison_counts_the_runs_that_are_left(self):
        suite = self.suite('repetitions = 3\n\n[[runs]]\npreset = "tiny"\ntrain-iters = 2\nglobal-batch-size = 4\n'
                           'threads = 1\neval-samples = 4\nno-save = true\nvary.lr = [1e-3, 2e-3, 3e-3]\n')
        begun = self.compare(suite, "--budget", "0.001s", processes=1)
        self.assertEqual(begun.returncode, 0, begun.stderr)
        whole = os.path.realpath(f"{self.folder}/latest")
        shutil.rmtree(f"{whole}/0.001-r1")  # one run of the first repetition is missing
        ours, theirs = pty.openpty()
        process = spawn([chorale, "compare", "--resume", whole], stdout=subprocess.DEVNULL, stderr=theirs,
                        env={**os.environ, "TERM": "xterm"})
        os.close(theirs)
        seen = rest_of(ours)
        finish(process)
        self.assertEqual(process.returncode, 0, seen)
        self.assertEqual(re.findall(r"compare  \d+/\d+", seen.decode()), ["compare  0/1"])

    def test_a_run_that_cannot_be_is_a_row_that_says_why(self):
        suite = self.suite('[[runs]]\npreset = "tiny"\ntrain-iters = 2\nglobal-batch-size = 8\nthreads = 1\nno-save = true\n'
                           'memory-limit = "8M"\nvary.layout = ["dp2", "dp2.z3"]\n')
        result = self.compare(suite)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("dp2-r1: a rank has too little memory for its optimizer", result.stdout)
        with xarray.open_dataset(f"{self.folder}/latest/run.h5", group="summary") as summary:
            status = dict(zip(summary.layout.values, summary.status.values))
            self.assertNotEqual(status["dp2"], "ok")

    # Starts a comparison and waits until some of its runs have finished, but not all. Returns the process, the finished runs
    # and the process ids of the ranks.
    def interrupted(self, *words):
        def some_are_done():
            try:
                with h5py.File(f"{self.folder}/latest/run.h5") as record:
                    rows = zip(record["summary/id"].asstr()[:], record["summary/status"].asstr()[:])
                    done = [name for name, status in rows if status == "ok"]
                    pids = [int(pid) for pid in record["ranks/pid"]]
            except (OSError, KeyError, ValueError):  # the record does not exist yet
                return None
            return (done, pids) if len(done) >= 3 else None

        process = spawn([*launch, "-n", "2", chorale, "compare", *words, "--run-dir", self.folder], stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL)
        done, pids = until(some_are_done, process)
        self.assertEqual(len(pids), 2)
        return process, done, pids

    def test_what_a_kill_left_undone_is_done_later(self):
        process, done, pids = self.interrupted(small, "--repetitions", "2")
        for pid in pids:  # otherwise the comparison might finish too early
            os.kill(pid, signal.SIGSTOP)
        running = ranks(2, chorale, "compare", "--resume", f"{self.folder}/latest")
        self.assertEqual(running.returncode, 2, running.stderr)
        self.assertIn("the comparison is still running", running.stderr)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        finish(process)
        whole = os.path.realpath(f"{self.folder}/latest")
        with h5py.File(f"{whole}/run.h5") as record:
            self.assertEqual([name for name in done if name not in record["runs"]], [])
        finished = {name: os.stat(f"{whole}/{name}/run.h5").st_mtime_ns for name in done}
        alone = ranks(1, chorale, "compare", "--resume", whole)
        self.assertEqual(alone.returncode, 2, alone.stderr)
        self.assertIn(f"mpirun -n 2 {chorale} compare --resume {whole}\n", alone.stderr)
        with open(f"{whole}/{done[0]}/run.h5", "r+b") as damaged:  # a damaged run must run again
            damaged.truncate(100)
        result = ranks(2, chorale, "compare", "--resume", whole)
        self.assertEqual(result.returncode, 0, result.stderr)
        kept = {name: os.stat(f"{whole}/{name}/run.h5").st_mtime_ns for name in done[1:]}
        self.assertEqual(kept, {name: finished[name] for name in done[1:]})  # all undamaged runs must be kept
        with xarray.open_dataset(f"{whole}/run.h5", group="summary") as summary:
            self.assertEqual(list(summary.status.values), ["ok"] * 10)  # two repetitions, as originally requested
        with h5py.File(f"{whole}/run.h5") as record:
            self.assertEqual(len(record["runs"]), 10)

    def test_a_run_that_fails_ends_the_launch_and_is_a_row_when_the_others_go_on(self):
        suite = self.suite("""question = "Which rate?"
ranks = 2
repetitions = 1

[[runs]]
preset = "tiny"
train-iters = 6
lr-warmup-iters = 0
optimizer = "sgd"
clip-grad = 0
numerics = "exact"
no-save = true
layout = "dp2"
vary.lr = [1e-3, 100]
""")
        result = self.compare(suite)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("numbers have grown too large", result.stderr)
        self.assertIn(f"100-r1 failed; to run the others: mpirun -n 2 {chorale} compare --resume ", result.stderr)
        result = self.compare("--resume", f"{self.folder}/latest")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("100-r1: failed: step", result.stdout)
        with xarray.open_dataset(f"{self.folder}/latest/run.h5", group="summary") as summary:
            status = dict(zip(summary.id.values, summary.status.values))
            self.assertEqual(status["0.001-r1"], "ok")
            self.assertIn("numbers have grown too large", status["100-r1"])

    def test_a_polite_signal_stops_it_where_it_is(self):
        suite = self.suite('[[runs]]\npreset = "tiny"\ntrain-iters = 40\nglobal-batch-size = 8\nthreads = 1\n'
                           'no-save = true\n'
                           'eval-samples = 4\nvary.layout = ["dp2", "tp2", "pp2", "dp2.z1", "dp2.z2", "dp2.z3"]\n')
        process, done, pids = self.interrupted(suite, "--repetitions", "5")
        os.kill(pids[1], signal.SIGTERM)
        output, _ = finish(process)
        self.assertEqual(process.returncode, 1, output)
        self.assertIn(f"stopped; to run the rest: mpirun -n 2 {chorale} compare --resume ", output)
        with xarray.open_dataset(f"{self.folder}/latest/run.h5", group="summary") as summary:
            self.assertEqual(set(summary.status.values), {"ok", "waiting"})

    def test_a_benchmark_that_a_signal_stopped_is_run_again(self):
        suite = self.suite('[[runs]]\ncommand = "bench"\nbackend = "shm"\nbegin = 64\nend = 64\nin-place = "no"\n'
                           'repetitions = 9000000\nvary.algorithm = ["ring", "direct"]\n')
        process = spawn([*launch, "-n", "2", chorale, "compare", suite, "--run-dir", self.folder], stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE)
        until(lambda: os.path.exists(f"{self.folder}/latest/suite.toml"), process)
        process.send_signal(signal.SIGUSR1)  # not SIGINT, after which mpirun kills ranks that take over a second to end
        output, errors = finish(process)
        self.assertIn(f"stopped; to run the rest: mpirun -n 2 {chorale} compare --resume ", output, errors)
        with open(f"{self.folder}/latest/suite.toml", "r+") as file:
            fewer = file.read().replace("9000000", "3")
            file.seek(0), file.truncate(), file.write(fewer)
        again = ranks(2, chorale, "compare", "--resume", f"{self.folder}/latest")
        self.assertEqual(again.returncode, 0, again.stderr)
        with xarray.open_dataset(f"{self.folder}/latest/run.h5", group="summary") as summary:
            self.assertEqual(list(summary.status.values), ["ok"] * 2)

    short = ("--preset", "tiny", "--train-iters", "2", "--global-batch-size", "4", "--threads", "1", "--eval-samples", "4")

    def test_another_program_is_a_row_and_a_row_that_says_why_if_it_fails(self):
        script = os.path.join(self.folder, "my.py")
        with open(script, "w") as file:
            file.write("""import os, sys
what = sys.argv[1]
if what == "works":
    print("tokens/s =", 100 + len(os.environ["MINE"]))
    mpi = [name for name in os.environ if name.startswith(("PMIX_", "OMPI_COMM"))]
    print(os.getcwd(), len(os.sched_getaffinity(0)), mpi)
elif what == "fails":
    raise ValueError("no such layer")
elif what == "twice":
    print("1 tokens/s\\n2 tokens/s")
elif what == "nan":
    print("tokens/s: nan")
else:
    print("done")
""")
        suite = self.suite(f"""ranks = 2
[[runs]]
{self.model}train-iters = 2
layout = "dp2"

[[runs]]
command = "/usr/bin/python3 my.py {{what}}"
label = "mine"
folder = "{self.folder}"
environment = ["MINE=12345"]
vary.what = ["works", "fails", "twice", "nan", "silent"]
""")
        result = self.compare(suite)
        self.assertEqual(result.returncode, 3, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"(?m)^mine, works +1 +105 ")
        self.assertRegex(result.stdout, r"(?m)^dp2 +1 +\d[\d.]* ")
        told = " ".join(result.stdout.split())
        for says in ("mine__fails-r1: exit code 1; its last lines: ", "| ValueError: no such layer",
                     "mine__twice-r1: 2 times tokens/s beside a number, the last 2: print one result",
                     "mine__nan-r1: nan is no positive number of tokens/s; its last lines: tokens/s: nan",
                     "mine__silent-r1: no line has tokens/s beside a number; its last lines: done"):
            self.assertIn(says, told)
        whole = os.path.realpath(f"{self.folder}/latest")
        with open(f"{whole}/mine__works-r1/stdout.txt") as output:
            folder, cpus, variables = output.read().splitlines()[1].split(" ", 2)
        self.assertEqual(os.path.realpath(folder), os.path.realpath(self.folder))
        self.assertEqual(variables, "[]")
        self.assertGreaterEqual(int(cpus), min(2, len(os.sched_getaffinity(0))))
        with xarray.open_dataset(f"{whole}/run.h5", group="summary") as summary:
            self.assertEqual(sum(status == "ok" for status in summary.status.values), 2)
            self.assertIn(105, summary.tokens_per_s.values)
        with open(f"{whole}/report.html") as page:
            self.assertIn("mine, works", page.read())
        again = self.compare("--resume", whole)  # the failed runs stay in the table
        self.assertIn("exit code 1; its last lines:", again.stdout)
        with open(f"{whole}/outside.csv", "w") as rows:
            rows.write('label,tokens/s\n"theirs, compiled",77\n"theirs, compiled",79\n')
        beside = start([chorale, "report", f"{whole}/run.h5"])
        self.assertRegex(beside.stdout, r"(?m)^theirs, compiled +2 +78 ")
        named = os.path.join(self.folder, "rows.csv")
        shutil.move(f"{whole}/outside.csv", named)
        self.assertNotIn("theirs", start([chorale, "report", f"{whole}/run.h5"]).stdout)
        self.assertRegex(start([chorale, "report", f"{whole}/run.h5", named]).stdout, r"(?m)^theirs, compiled +2 +78 ")
        table = start([chorale, "report", f"{whole}/run.h5", named, "--format", "csv"])
        self.assertEqual(table.returncode, 0, table.stderr)
        printed = {row["id"]: row for row in csv.DictReader(io.StringIO(table.stdout))}
        self.assertEqual([(row["tokens_per_s"], row["repetition"], row["status"]) for id, row in printed.items()
                          if id.startswith("theirs")], [("77", "1", "ok"), ("79", "2", "ok")])
        self.assertIn("train-r1", printed)
        no_table = start([chorale, "report", f"{whole}/run.h5", named, "--group", "config"])
        self.assertEqual((no_table.returncode, no_table.stdout), (2, ""))
        self.assertIn("the rows of a CSV file stand in /summary", no_table.stderr)
        with open(named, "w") as rows:
            rows.write('label,tokens/s\ndp2,1\n')
        self.assertRegex(start([chorale, "report", f"{whole}/run.h5", named]).stdout, r"(?m)^dp2 \(rows.csv\) +1 +1 ")
        with open(named, "w") as rows:
            rows.write('label,tokens/s\n"theirs, compiled",77\n"theirs, compiled",79\nx,fast\n')
        wrong = start([chorale, "report", f"{whole}/run.h5", named])
        self.assertEqual(wrong.returncode, 2, wrong.stdout)
        self.assertIn(f'{named}:4: tokens/s must be a positive number, not "fast"', wrong.stderr)

    def test_mistakes_about_another_program_are_said_before_anything_runs(self):
        result = self.compare(self.suite('measure.pattern = "speed"\n[[runs]]\ncommand = "nowhere/my.py x"\n\n'
                                         '[[runs]]\ncommand = "A=1 python3 my.py"\n\n[[runs]]\ncommand = "sh -c x"\n'
                                         'folder = "nowhere"\n\n[[runs]]\ncommand = ["sh", 3]\n\n[[runs]]\n'
                                         'command = "sh -c y"\nenvironment = ["OMP_NUM_THREADS"]\n'))
        self.assertEqual(result.returncode, 2, result.stderr)
        for says in ("the suite has 6 mistakes", ":1: pattern is no regular expression for a number: it has 0 groups",
                     ":2: no program nowhere/my.py is found from the folder ", ":5: no program A=1 is found in PATH",
                     'no such folder: folder = "nowhere"', ":13: command must be a list of strings",
                     'environment takes NAME=value, not "OMP_NUM_THREADS"'):
            self.assertIn(says, result.stderr)
        wrong = self.compare(self.suite('metric = 3\nfill-memory = 8\n[[runs]]\ncommand = "sh -c x"\n'))
        for says in ("the suite has 2 mistakes", ':1: metric must be "', ':2: fill-memory must be a size in quotes'):
            self.assertIn(says, wrong.stderr)

    def test_the_example_of_another_program_in_the_docs_works(self):
        with open("docs/experiments.md") as docs:
            section = docs.read().split("## Beside another program\n")[1]
        for name, language in (("my.py", "python"), ("beside.toml", "toml")):
            with open(os.path.join(self.folder, name), "w") as file:
                file.write(section.split(f"```{language}\n")[1].split("```")[0])
        result = start(["sh", "-c", 'cd "$0" && exec "$1" compare beside.toml --repetitions 1', self.folder,
                        os.path.realpath(chorale)])
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for row in ("dp1", "mine, work 20", "mine, work 40"):
            self.assertRegex(result.stdout, rf"(?m)^{row} +1 +\d")

    def test_each_layout_gets_the_largest_micro_batch_that_fits(self):
        shape = ["--preset", "tiny", "--global-batch-size", "16", "--train-iters", "2", "--threads", "1", "--eval-samples",
                 "4"]
        result = self.compare("--layouts", "dp2,pp2", *shape, "--fill-memory", "22M", "--repetitions", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("fastest with the largest micro-batch in 22.0 MiB per rank?", result.stdout)
        with xarray.open_dataset(f"{self.folder}/latest/run.h5", group="summary") as summary:
            sizes = {str(layout): int(size) for layout, size in zip(summary.layout.values, summary.micro_batch_size.values)}
            self.assertTrue((summary.peak_bytes.values <= 22 * 2**20).all())
        for layout, most in (("dp2", 8), ("pp2", 8)):
            self.assertLessEqual(sizes[layout], most)  # pp2 needs at least one micro-batch per stage
            if sizes[layout] < most:  # a model of twice the size must not fit
                larger = ranks(2, chorale, "train", *shape, "--layout", layout, "--memory-limit", "22M", "--no-save",
                               "--micro-batch-size", str(2 * sizes[layout]), "--run-dir", self.folder)
                self.assertIn("too little memory", larger.stderr)
        self.assertLess(sizes["dp2"], 8)
        small = self.compare("--layouts", "dp2", *shape, "--fill-memory", "1M", "--repetitions", "1")
        self.assertIn("too little memory", small.stdout)
        twice = self.compare("--layouts", "dp2", *shape, "--fill-memory", "30M", "--micro-batch-size", "2")
        self.assertEqual(twice.returncode, 2, twice.stderr)
        self.assertIn("micro-batch-size cannot be set, because fill-memory sets it", twice.stderr)

    def test_layouts_need_no_file(self):
        result = self.compare("--layouts", "tp2,dp1", *self.short, "--repetitions", "1", "--dtype", "bf16")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("Which of 2 layouts trains tiny fastest?", result.stdout)
        with xarray.open_dataset(f"{self.folder}/latest/run.h5", group="summary") as summary:
            self.assertEqual(sorted(zip(summary.layout.values, summary.ranks.values)), [("dp1", 1), ("tp2", 2)])
            self.assertEqual(set(summary.status.values), {"ok"})
        with h5py.File(f"{self.folder}/latest/run.h5") as record:
            config = record["runs/tp2-r1/config/toml"].asstr()[()]
            for line in ('dtype = "bf16"', "train-iters = 2", "no-save = true"):
                self.assertIn(line, config)
        # The program saves the comparison as a suite file. So the comparison can be resumed, or repeated from this file.
        again = ranks(2, chorale, "compare", "--resume", f"{self.folder}/latest", "--repetitions", "2")
        self.assertEqual(again.returncode, 0, again.stderr)
        with xarray.open_dataset(f"{self.folder}/latest/run.h5", group="summary") as summary:
            self.assertEqual(list(summary.status.values), ["ok"] * 4)
        suite = self.compare(f"{os.path.realpath(self.folder + '/latest')}/suite.toml", "--repetitions", "1")
        self.assertEqual(suite.returncode, 0, suite.stderr)

    def test_bytes_and_bubble_of_the_table_are_those_of_the_plan_and_of_the_record(self):
        model = ["--preset", "tiny", "--global-batch-size", "4", "--threads", "1", "--backend", "shm", "--algorithm", "ring"]
        counted = []
        for samples in ("4", "40"):  # the bytes of evaluations must not count
            result = self.compare("--layouts", "pp2,tp2", *model, "--train-iters", "3", "--eval-samples", samples,
                                  "--repetitions", "1")
            self.assertEqual(result.returncode, 0, result.stderr)
            with xarray.open_dataset(f"{self.folder}/latest/run.h5", group="summary") as summary:
                rows = {str(layout): (int(bytes), float(bubble)) for layout, bytes, bubble in
                        zip(summary.layout.values, summary.bytes_sent.values, summary.bubble.values)}
            for layout, (sent, bubble) in rows.items():
                planned = ranks(1, chorale, "plan", *model, "--layout", layout, "--format", "json")
                self.assertEqual(planned.returncode, 0, planned.stderr)
                of_stages = sum(row["sent_bytes"] for row in json.loads(planned.stdout)["traffic"])
                self.assertEqual(sent, of_stages * (2 if layout == "tp2" else 1), layout)
                line = next(line for line in result.stdout.splitlines() if line.startswith(layout + " "))
                self.assertAlmostEqual(float(line.split(" %")[-2].split()[-1]), 100 * bubble, delta=0.5, msg=line)
            counted.append({layout: sent for layout, (sent, _) in rows.items()})
        self.assertEqual(*counted)

    def test_one_layout_is_a_question_of_its_own(self):
        result = self.compare("--layouts", "dp2", *self.short, "--repetitions", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("How fast does dp2 train tiny?", result.stdout)

    def test_all_layouts_are_those_that_plan_lists(self):
        result = self.compare("--layouts", "all", "--pp", "1", "--cp", "1", *self.short, "--repetitions", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        planned = ranks(1, chorale, "plan", "--layout", "all", "--pp", "1", "--cp", "1", "--ranks", "2", "--format", "json",
                        *self.short[:2], *self.short[4:6])
        self.assertEqual(planned.returncode, 0, planned.stderr)
        with xarray.open_dataset(f"{self.folder}/latest/run.h5", group="summary") as summary:
            self.assertEqual(sorted(summary.layout.values), sorted(row["layout"] for row in json.loads(planned.stdout)))

    def test_mistakes_beside_layouts_are_three_lines(self):
        for words, says in ((["--layouts", "dp2,tp5", *self.short], ["tensor 5", "try "]),
                            (["--layouts", "dp2,tq2", *self.short], ['"tq2"', "did you mean"]),
                            (["--layouts", "dp4", *self.short], ["layout dp4 needs 4 ranks, 2 were started", "mpirun -n 4"]),
                            (["--layouts", "dp2", *self.short, "--lr", "much"], ['"much" is not a value of lr', "a number"]),
                            (["--layouts", "dp2", *self.short, "--optimizer", "sdg"], ['"sdg"', "adamw, sgd"]),
                            (["--layouts", "dp2", "--preset", "tinny"], ['unknown preset "tinny"', 'did you mean "tiny"']),
                            (["--layouts", "dp2", "--trian-iters", "3"], ["unknown flag --trian-iters", "--train-iters"]),
                            (["--layouts", "dp2", *self.short, "--warm-up", "2"], ["leaves no step after a warm-up of 2"]),
                            (["--layouts", "dp2", small], ["compare needs one of these"]),
                            ([small, "--train-iters", "3"], ["train-iters is an option of the runs", "--layouts"])):
            with self.subTest(words=words):
                result = self.compare(*words)
                self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
                for part in says:
                    self.assertIn(part, result.stderr)
                self.assertEqual(os.listdir(self.folder), [])

        alone = start([chorale, "compare", "--layouts", "dp1,tp3", *self.short])
        self.assertEqual(len(alone.stderr.splitlines()), 3, alone.stderr)

    def test_a_variable_meant_for_train_is_no_mistake_beside_a_suite(self):
        suite = self.suite(f"[[runs]]\n{self.model}train-iters = 1\n")
        result = start([chorale, "compare", suite, "--run-dir", self.folder, "--repetitions", "1"], CHORALE_DTYPE="bf16")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_what_is_no_comparison_cannot_go_on(self):
        result = self.compare("--resume", self.folder)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("has no suite.toml", result.stderr)


if __name__ == "__main__":
    unittest.main()
