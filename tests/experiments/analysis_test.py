"""Tests experiments/analysis/*.py. The pictures are well-formed and show a record's values, for runs and suites. False
alarms are counted."""
import os
import re
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
