"""Tests `chorale bench kernels`, which prints and records every kernel of a training step with its measured time and its
reference time."""
import csv
import io
import json
import re
import unittest

import xarray

from in_folder import InFolder
from programs import chorale, ranks, sample, start

few = ["--preset", "tiny", "--threads", "1", "--global-batch-size", "8", "--steps", "2"]
layers, width, sequence, vocabulary, samples = 8, 96, 24, 480, 8  # the preset's shape and the batch size
tokens = samples * sequence
flops_of_products = 6 * tokens * (layers * 12 * width ** 2 + vocabulary * width)
flops_of_attention = (2 + 5) * 2 * layers * samples * (sequence ** 2 // 2) * width  # a score on the diagonal counts as half


class Kernels(InFolder):
    def bench(self, *words):
        return self.run_it("bench", "kernels", *few, *words, "--run-dir", self.folder)

    def recorded(self):
        with xarray.open_dataset(f"{self.folder}/latest/run.h5", group="kernels") as data:
            return data.load().to_dataframe().set_index("name")

    def test_the_table_has_all_flops_and_bytes_of_a_step_in_every_type_and_numerics(self):
        for words in sample((["--dtype", "bf16"], ["--dtype", "f32"], ["--numerics", "exact"], ["--threads", "2"]), 2):
            with self.subTest(words=words):
                self.bench(*words)
                rows = self.recorded()
                rest = rows.iloc[-1]
                self.assertEqual((rest.name, rest.calls, rest.floor), ("between kernels", 0, 0))
                self.assertGreater(rest.time, 0)  # negative if a kernel were charged twice
                kernels = rows.iloc[:-1]
                self.assertTrue((kernels.floor > 0).all() and (kernels.time > 0).all() and (kernels.calls > 0).all())
                self.assertTrue(kernels.time.is_monotonic_decreasing)
                attention = kernels.index.str.contains("attention")
                self.assertEqual(kernels.flops[attention].sum(), flops_of_attention)
                self.assertEqual(kernels.flops[~attention].sum(), flops_of_products)
                size = 2 if "bf16" in words else 4
                self.assertEqual(rows.bytes["GELU"], layers * 2 * tokens * 4 * width * size)
                self.assertEqual(rows.calls["norm"], 2 * layers + 1)
                self.assertEqual(rows.calls["AdamW"].sum(), 1)

    def test_a_reference_is_that_of_the_products_peak_or_of_the_copies(self):
        printed = json.loads(self.bench("--format", "json"))
        with xarray.open_dataset(f"{self.folder}/latest/run.h5") as data:
            peak = data.attrs["peak_flops"]
        for row in self.recorded().iloc[:-1].itertuples():
            self.assertAlmostEqual(row.floor / max(row.flops / peak, row.bytes / row.copy_rate), 1, delta=1e-6)
            self.assertGreater(row.copy_rate, 0)
        self.assertEqual(printed[-1]["kernel"], "between kernels")
        self.assertAlmostEqual(sum(float(row["share"].rstrip(" %")) for row in printed), 100, delta=5)

    def test_it_is_read_as_text_by_report_and_as_csv(self):
        text = self.bench()
        self.assertRegex(text, r"# the fastest of 2 steps of 8 samples took .* on 1 thread; peak of products: \d+ GFLOP/s")
        self.assertRegex(text, rf"\nproduct +\[{tokens}, {width}\]·\[{width}, {4 * width}\] +{layers} ")
        file = re.search(r"# recorded in (\S+)", text)[1]
        report = start([chorale, "report", file, "--group", "kernels", "--format", "csv"])
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assertRegex(text, r"(?m)^# reference: .*\n#   longer; no bound: .*$")
        self.assertNotIn("floor", text)
        rows = list(csv.DictReader(io.StringIO(report.stdout)))
        self.assertIn("gradient of GELU", [row["name"] for row in rows])
        self.assertIn("gradient of GELU", start([chorale, "report", file, "--rows", "0"]).stdout)

    def test_ranks_train_at_the_same_time_each_alone(self):
        result = ranks(2, chorale, "bench", "kernels", *few, "--run-dir", self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("between kernels"), 1)
        rows = self.recorded()
        self.assertEqual(rows.flops.sum(), flops_of_attention + flops_of_products)

    def test_what_it_does_not_cover_is_refused(self):
        for words in (["--device", "cuda"], ["--layout", "tp2"]):
            self.refused("bench", "kernels", *few, *words, says=[f"unknown flag {words[0]}", "kernels has no such flag"])


if __name__ == "__main__":
    unittest.main()
