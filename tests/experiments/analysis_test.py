"""Tests experiments/analysis/*.py. The scripts' pictures of runs and suites must be well-formed and show the values in the
records. Other tests cover the scripts that count false alarms and that compare predicted times with measured times."""
import os
import re
import statistics
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import h5py

from programs import chorale, ranks, start

svg = "{http://www.w3.org/2000/svg}"


class Analysis(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = cls.holder.name
        cls.addClassCleanup(cls.holder.cleanup)
        cls.files = []
        for layout in ("dp2", "pp2"):
            run = ranks(2, chorale, "train", "--preset", "tiny", "--threads", "1", "--global-batch-size", "4", "--layout",
                        layout, "--train-iters", "5", "--eval-samples", "4", "--no-save", "--run-dir", cls.folder)
            assert run.returncode == 0, run.stderr
            cls.files.append(os.path.realpath(f"{cls.folder}/latest/run.h5"))

    def drawn(self, script, *words):
        out = f"{self.folder}/{script}.svg"
        result = start([sys.executable, "-Wignore", f"experiments/analysis/{script}.py", *words, "--out", out])
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout, xml.etree.ElementTree.parse(out).getroot()

    def curves(self, root):
        return [line for line in root.iter(f"{svg}polyline") if line.get("stroke-width") == "2"]

    def test_a_curve_has_a_point_for_every_step_of_every_run(self):
        said, root = self.drawn("loss_curves", *self.files)
        self.assertEqual([len(curve.get("points").split()) for curve in self.curves(root)], [5, 5])
        self.assertEqual(len({curve.get("stroke") for curve in self.curves(root)}), 2)
        with h5py.File(self.files[1]) as file:
            self.assertIn(f"5 steps  loss {file['train/loss'][0]:.4f} → {file['train/loss'][4]:.4f}", said)
        heights = [float(point.split(",")[1]) for curve in self.curves(root) for point in curve.get("points").split()]
        self.assertTrue(all(40 <= height <= 370.1 for height in heights), heights)

    def test_a_suites_runs_are_drawn_like_runs_of_their_own(self):
        suite = f"{self.folder}/suite.h5"
        with h5py.File(suite, "w") as file:
            for name, path in zip(("one", "two"), self.files):
                with h5py.File(path) as run:
                    run.copy(run["/"], file, f"runs/{name}")
        said, root = self.drawn("loss_curves", suite)
        self.assertEqual(len(self.curves(root)), 2)
        self.assertRegex(said, r"(?m)^one +5 steps")

    def test_a_stack_is_as_high_as_its_phases_are_long(self):
        said, root = self.drawn("step_time", self.files[1], "--skip", "1")
        with h5py.File(self.files[1]) as file:
            times = 1e3 * file["phases/phase_time"][1:].mean(axis=0)
        bars = [bar for bar in root.iter(f"{svg}rect") if bar.find(f"{svg}title") is not None]
        self.assertEqual(len(bars), 2 * 7)
        scale = 330 / max(times.sum(axis=1) - times[:, 4])
        for bar in bars:
            rank, phase, value = re.match(r"rank (\d), (\w+): ([\d.]+) ms", bar.find(f"{svg}title").text).groups()
            self.assertAlmostEqual(float(bar.get("height")), scale * float(value), delta=0.2 + 0.01 * scale)
        forward = next(bar for bar in bars if bar.find(f"{svg}title").text.startswith("rank 1, forward"))
        self.assertIn(f"{times[1, 0]:.2f} ms", forward.find(f"{svg}title").text)
        self.assertRegex(said, rf"(?m)^   1 +{times[1, 0]:.3f} ")

    def test_a_record_without_training_says_so(self):
        self.assertEqual(start([chorale, "info", "--run-dir", f"{self.folder}/info"]).returncode, 0)
        result = start([sys.executable, "experiments/analysis/loss_curves.py", f"{self.folder}/info/latest/run.h5"])
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "no run with a training step in these files\n")

    def predicted(self, *files):
        return start([sys.executable, "experiments/analysis/predicted.py", *files])

    def suite_of(self, runs, **columns):
        """Writes the record of a suite, with the step times of each run in each repetition, and additional columns of
        /summary."""
        path = f"{self.folder}/{len(os.listdir(self.folder))}.h5"
        with h5py.File(path, "w") as file:
            turns = [(f"{name}-r{turn + 1}", times) for name, turns in runs.items() for turn, times in enumerate(turns)]
            file.attrs["warm_up"] = 1
            for name, times in turns:
                file[f"runs/{name}/train/step_time"] = [9.0, *times, 9.0]  # first a warm-up step, last an incomplete row
                file[f"runs/{name}/train"].attrs["committed_rows"] = 1 + len(times)
            text = h5py.string_dtype()
            file.create_dataset("summary/id", data=[name for name, _ in turns], dtype=text)
            for column, value in (("command", "train"), ("status", "ok")):
                file.create_dataset(f"summary/{column}", data=[value] * len(turns), dtype=text)
            file["summary/step_time"] = [statistics.median(times) for _, times in turns]
            for column, values in columns.items():
                file[f"summary/{column}"] = values
        return path

    def test_tau_counts_the_pairs_that_differ_and_are_predicted_in_order(self):
        # The times of b and c overlap, so the pair (b, c) does not count. d is predicted to be the fastest but is the
        # slowest, so the three predictions for pairs with d are wrong. The predictions for the other two pairs are right.
        runs = {"a": [[1.0], [1.1]], "b": [[2.0], [2.2]], "c": [[2.1], [2.3]], "d": [[3.0], [3.1]]}
        predicted = [1.05, 1.05, 2.1, 2.1, 2.0, 2.0, 1.04, 1.04]
        said = self.predicted(self.suite_of(runs, predicted_step_time=predicted))
        self.assertEqual(said.returncode, 0, said.stderr)
        rows = {line.split()[0]: line.split()[1:] for line in said.stdout.splitlines()}
        self.assertEqual(rows["a"], "1.0500 s 1.0000 to 1.1000 s 1.0500 s 1.00".split())
        self.assertEqual(rows["d"], "3.0500 s 3.0000 to 3.1000 s 1.0400 s 0.34 off".split())
        self.assertIn("within 15%: 3 of 4 runs (75%)\n", said.stdout)
        self.assertIn("Kendall's tau: -0.20 over 5 of 6 pairs", said.stdout)
        one = self.predicted(self.suite_of({"a": [[1.0, 1.0, 4.0]], "b": [[2.0, 3.0, 2.0]]}, predicted_step_time=[1, 2]))
        self.assertIn("Kendall's tau: unknown, because the intervals of every pair overlap", one.stdout)
        some = self.predicted(self.suite_of({"a": [[1.0]], "b": [[2.0]]}, predicted_step_time=[1, float("nan")]))
        self.assertIn("without a prediction (predicted_step_time): b\n", some.stdout)
        self.assertIn("within 15%: 1 of 1 runs", some.stdout)
        none = self.predicted(self.files[0])
        self.assertEqual((none.returncode, none.stderr.count("\n")), (1, 1))
        self.assertIn("is not the record of a suite", none.stderr)

    def test_intervals_are_those_of_compare(self):
        sys.path.insert(0, "experiments/analysis")
        import predicted
        for count, left_out in ((1, 0), (5, 0), (6, 0), (9, 1), (12, 2), (20, 5)):
            self.assertEqual(predicted.interval(range(count)), (left_out, count - 1 - left_out), count)

    def test_predictions_of_a_record_of_compare_are_found(self):
        folder = f"{self.folder}/compare"
        run = ranks(2, chorale, "compare", "--layouts", "dp2,tp2", "--preset", "tiny", "--threads", "1", "--train-iters",
                    "4", "--global-batch-size", "4", "--eval-samples", "4", "--repetitions", "2", "--run-dir", folder)
        self.assertEqual(run.returncode, 0, run.stderr)
        path = f"{folder}/latest/run.h5"
        with h5py.File(path, "r+") as file:
            summary = file["summary"]
            if "predicted_step_time" in summary:  # there are predictions only with a calibrated machine file
                del summary["predicted_step_time"]
            summary["predicted_step_time"] = 1.1 * summary["step_time"][:]
        said = self.predicted(path)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("Which of 2 layouts trains tiny fastest?", said.stdout)
        self.assertCountEqual(re.findall(r"(?m)^(\S+) .* 1\.10$", said.stdout), ["dp2", "tp2"])
        self.assertIn("within 15%: 2 of 2 runs (100%)", said.stdout)

    def test_false_alarms_are_counted_and_go_on_where_they_stopped(self):
        words = [sys.executable, "experiments/analysis/false_alarms.py", "--program", chorale, "--out",
                 f"{self.folder}/alarms", "--launches", "1", "--repetitions", "2", "--comparisons"]
        first = start([*words, "1"])
        self.assertEqual((first.returncode, first.stdout.count("\n")), (0, 1), first.stderr)
        made = os.stat(f"{self.folder}/alarms/1.h5").st_mtime_ns
        self.assertEqual(start([*words, "2"]).stdout.splitlines()[-1],
                         "2/2  launches that alternate: 0 slower, 0 not slower, 2 too few runs to tell  "
                         "one record after the other: 0 slower, 0 not slower, 1 too few runs to tell")
        self.assertEqual(os.stat(f"{self.folder}/alarms/1.h5").st_mtime_ns, made)


if __name__ == "__main__":
    unittest.main()
