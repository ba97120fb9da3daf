"""Checks docs/records.md against real records. The page must describe the complete contents of the records, and the examples
on the page must run unchanged."""
import itertools
import os
import re
import sys
import tempfile
import unittest

import h5py
import xarray

from programs import chorale, launch, ranks, sample, start, thorough

with open("docs/records.md", encoding="utf-8") as page:
    text = page.read()


class Records(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = cls.holder.name
        cls.addClassCleanup(cls.holder.cleanup)
        tiny = ["--preset", "tiny", "--threads", "1", "--global-batch-size", "4"]
        made = [start([chorale, "bench", "all_reduce", "--backend", "threads", "--end", "1K", "--out",
                       f"{cls.folder}/bench.h5"]),
                start([chorale, "bench", "all_reduce", "--end", "64", "-n", "3", "--launches", "2", "--out",
                       f"{cls.folder}/launches.h5"], MPIRUN=" ".join(launch)),
                start([chorale, "prove", "--steps", "1", "--run-dir", f"{cls.folder}/prove"]),
                start([chorale, "info", "--run-dir", f"{cls.folder}/info"]),
                start([chorale, "bench", "kernels", *tiny, "--steps", "1", "--run-dir", f"{cls.folder}/kernels"]),
                ranks(2, chorale, "train", *tiny, "--layout", "pp2", "--train-iters", "4", "--eval-samples", "4",
                      "--no-save", "--trace-steps", "2", "--run-dir", f"{cls.folder}/runs"),
                start([chorale, "train", "--preset", "tiny-moe", "--threads", "1", "--global-batch-size", "4",
                       "--moe-expert-capacity-factor", "0.5", "--train-iters", "4", "--log-interval", "3", "--eval-samples",
                       "4", "--run-dir", f"{cls.folder}/experts"]),
                start([chorale, "launch", "--ranks", "2", "--run-dir", f"{cls.folder}/launch", "--", "train", *tiny,
                       "--train-iters", "2", "--eval-samples", "4"], MPIRUN=" ".join(launch))]
        os.mkdir(f"{cls.folder}/suite")
        made.append(ranks(2, chorale, "compare", *tiny, "--layouts", "dp2,tp2", "--train-iters", "4", "--eval-samples", "4",
                          "--run-dir", f"{cls.folder}/suite/runs"))
        for result in made:
            assert result.returncode == 0, result.stderr
        cls.files = [f"{cls.folder}/bench.h5", f"{cls.folder}/launches.h5",
                     *(f"{cls.folder}/{name}/latest/run.h5" for name in ("prove", "info", "kernels", "runs", "experts",
                                                                   "launch"))]
        cls.output_of_experts = made[6].stdout
        for name in ("bench.h5", "launches.h5"):
            os.symlink(f"../{name}", f"{cls.folder}/suite/{name}")

    def groups(self, file):
        found = ["/"]
        with h5py.File(file) as record:
            record.visititems(lambda name, item: found.append(f"/{name}") if isinstance(item, h5py.Group) else None)
        return found

    def section(self, group):
        """Returns the section of docs/records.md that describes a group. The section on single runs also describes the
        groups of each run in a suite."""
        group = re.sub(r"^/runs(/[^/]+)?", "", group) or "/"
        found = re.search(rf"(?ms)^### {re.escape(group)}\n(.*?)(?=^##|\Z)", text)
        self.assertTrue(found, f"{group} has no section")
        return found.group(1)

    def test_every_group_variable_dimension_and_attribute_is_described(self):
        for file in self.files:
            with h5py.File(file) as record:
                for group in self.groups(file):
                    rows = [row.split("|")[1:-1] for row in self.section(group).splitlines() if row.startswith("| `")]
                    described = {name: cells for cells in rows for name in re.findall(r"`([\w+]+)`", cells[0])}
                    for name, item in record[group].items():
                        if isinstance(item, h5py.Group):
                            continue
                        with self.subTest(file=file, variable=f"{group}/{name}"):
                            self.assertIn(name, described)
                            dims = [os.path.basename(axis[0].name) for axis in item.dims if len(axis)] or [name] * item.ndim
                            self.assertEqual(described[name][1].strip(), ", ".join(dims))
                            if item.attrs.get("units"):
                                self.assertIn(item.attrs["units"].decode() if isinstance(item.attrs["units"], bytes)
                                              else item.attrs["units"], described[name][2])
                    for name in record.attrs if group == "/" else []:
                        with self.subTest(file=file, attribute=name):
                            self.assertIn(name, described)

    def test_a_row_of_experts_counts_every_choice_of_its_steps(self):
        with h5py.File(f"{self.folder}/experts/latest/run.h5") as record:
            steps, chosen, dropped = (record["experts"][name][:] for name in ("steps", "chosen", "dropped"))
            self.assertEqual(steps.tolist(), [3, 1])
            self.assertEqual(chosen.sum(axis=2).tolist(), [[3 * 4 * 24 * 2] * 2, [4 * 24 * 2] * 2])
            self.assertGreaterEqual(dropped.sum(), chosen.sum() / 2)  # at least half of the choices exceed the capacity
            shares = record["train"]["dropped_share"][:]
            self.assertAlmostEqual(shares[3], dropped[1].sum() / chosen[1].sum())
        self.assertRegex(self.output_of_experts, r"tokens/s  MFU \S+ %  dropped \d+ %")

    def test_the_report_draws_the_load_of_each_expert(self):
        result = start([chorale, "report", f"{self.folder}/experts/latest/run.h5", "--html", f"{self.folder}/experts.html"])
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(f"{self.folder}/experts.html", encoding="utf-8") as page:
            loads = re.findall(r"<title>block \d, expert \d: [\d.]+ ×</title>", page.read())
        self.assertEqual(len(loads), 2 * 2 * 4)  # the picture is drawn in two widths

    def test_xarray_opens_every_group_of_every_record_with_both_engines(self):
        engines = "h5netcdf", "netcdf4"
        for file in self.files:
            for group, engine in sample(itertools.product(self.groups(file), engines), 3):
                with self.subTest(file=file, engine=engine, group=group), \
                        xarray.open_dataset(file, group=group, engine=engine) as data:
                    data.load()

    def test_tables_say_how_many_rows_they_have(self):
        for file, column in (("launches.h5", "launches/id"), ("prove/latest/run.h5", "cases/layout"),
                             ("kernels/latest/run.h5", "kernels/name"), ("suite/runs/latest/run.h5", "summary/id")):
            with h5py.File(f"{self.folder}/{file}") as record:
                self.assertEqual(record[os.path.dirname(column)].attrs["committed_rows"], len(record[column]))

    def test_the_steps_that_speeds_exclude_are_recorded(self):
        with h5py.File(f"{self.folder}/suite/runs/latest/run.h5") as suite:
            self.assertEqual(set(suite["summary/warm_up"][:]), {1})  # a tenth of the four steps, rounded up
            for number, id in enumerate(suite["summary/id"].asstr()[:]):
                self.assertEqual(suite[f"runs/{id}"].attrs["warm_up"], 1)
                speeds = sorted(suite[f"runs/{id}/train/tokens_per_s"][1:])
                self.assertAlmostEqual(suite["summary/tokens_per_s"][number], speeds[1], delta=1e-6 * speeds[1])

    def test_every_example_runs_as_it_stands_on_a_run_and_on_a_suite(self):
        blocks = re.findall(r"(?ms)^```(python|sh)\n(.*?)^```", text)
        self.assertGreaterEqual(len(blocks), 7)
        folders = self.folder, f"{self.folder}/suite"
        for (number, (language, block)), folder in itertools.product(enumerate(blocks), folders):
            if not thorough and folder != folders[number % 2]:
                continue
            with self.subTest(folder=folder, block=block):
                command = [sys.executable, "-Wignore", "-c", block] if language == "python" else ["bash", "-euc", block]
                result = start(command, folder=folder)
                self.assertEqual(result.returncode, 0, result.stderr)
                traces = "trace.json" in block and folder != self.folder  # runs of the suite have no trace
                self.assertEqual(not result.stdout.strip(), traces, "it prints nothing")


if __name__ == "__main__":
    unittest.main()
