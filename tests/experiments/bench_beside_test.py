"""Tests `chorale bench --beside products` as a user sees it: columns, tables, records, predictions and refusals."""
import csv
import json
import unittest

import h5py

from in_folder import InFolder
from programs import chorale, launch, ranks, start

quick = ["-b", "64", "-e", "64K", "-f", "32", "-n", "3", "-w", "1", "--ceiling", "no"]
seconds = ["products_seconds", "beside_seconds", "products_beside_seconds", "both_seconds"]


class BenchBeside(InFolder):
    def rows_of(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_a_call_beside_products_is_timed_and_checked_on_every_backend(self):
        rows = self.rows_of(ranks(2, chorale, "bench", "all_reduce", "--backend", "all", "--algorithm", "ring,native",
                                  "--beside", "products", "--format", "json", *quick))
        self.assertIn("native", {row["algorithm"] for row in rows})
        for row in rows:
            self.assertEqual(row["wrong"], 0, row)
            self.assertGreaterEqual(row["products"], 1)
            alone, call, slowed, both = (row[key] for key in seconds)
            self.assertTrue(min(alone, call, slowed) > 0 and both >= max(call, slowed), row)
            hidden = (row["seconds"] + alone - both) / min(row["seconds"], alone)
            self.assertAlmostEqual(row["hidden"], hidden, delta=1e-3 * (1 + both / min(row["seconds"], alone)))

    def test_without_products_there_are_no_such_values(self):
        plain = [chorale, "bench", "all_reduce", "--backend", "threads", "--format", "json", *quick]
        for row in self.rows_of(start(plain)):
            self.assertEqual([row["products"], row["hidden"], *(row[key] for key in seconds)], [0] + [None] * 5)

    def test_the_table_shows_both_together_in_place_of_the_bandwidths(self):
        said = start([chorale, "bench", "all_reduce", "--backend", "threads", "--in-place", "no", "--beside", "products",
                      *quick])
        title, names, *_ = [line for line in said.stdout.splitlines() if not line.startswith("#")]
        self.assertEqual(title, "all_reduce of f32, sum, 2 ranks, threads, out of place, beside products")
        self.assertEqual(names.split(), "bytes algorithm time calls beside products slower both hidden p95 p99 max".split())
        self.assertIn("# beside: ", said.stdout)

    def test_it_is_recorded_and_launches_are_merged(self):
        result = start([chorale, "bench", "all_reduce", "--backend", "shm", "--beside", "products", "--launches", "3",
                        *quick, "--format", "json", "--out", f"{self.folder}/new.h5"], MPIRUN=" ".join(launch))
        rows = self.rows_of(result)
        with h5py.File(f"{self.folder}/new.h5") as file:
            for column, name in (("products_alone", "products_seconds"), ("both", "both_seconds")):
                values = [list(file[f"runs/launch-{i}/series/{column}"]) for i in (1, 2, 3)]
                for row, *of_row in zip(rows, *values):
                    self.assertAlmostEqual(row[name] / sorted(of_row)[1], 1, places=3)

    def test_a_calibrated_file_predicts_both_together(self):
        machine = f"{self.folder}/machine.toml"
        calibrate = ["tune", "all_reduce", "--calibrate", "--backend", "shm", "--machine", machine, "-e", "5K", "-n", "3"]
        result = ranks(2, chorale, *calibrate)
        self.assertEqual(result.returncode, 0, result.stderr)
        words = ["bench", "all_reduce", "--algorithm", "ring", "--machine", machine, "--format", "json", *quick]
        beside = ["--beside", "products"]
        for row in self.rows_of(ranks(2, chorale, *words, "--backend", "shm", *beside)):
            self.assertGreater(row["both_predicted_seconds"], row["predicted_seconds"])
        for more in ([], ["--groups", "2"]):
            simulated = ["--backend", f"simulated:{machine}", "--ranks", "4", *more]
            rows = self.rows_of(start([chorale, *words, *simulated, *beside]))
            for row in rows:
                self.assertGreaterEqual(row["both_seconds"], max(row["seconds"], row["products_seconds"]))

    def test_on_simulated_accelerators_a_call_and_products_do_not_delay_each_other(self):
        text = self.run_it("bench", "all_reduce", "--backend", "simulated:selene", "--ranks", "8", "--dtype", "bf16",
                           "--beside", "products", "-b", "1M", "-e", "64M", "--format", "csv")
        for row in csv.DictReader(text.splitlines()):
            call, products, both = (float(row[key]) for key in ("seconds", "products_seconds", "both_seconds"))
            self.assertEqual(both, max(call, products))
            self.assertEqual(float(row["hidden"]), 1)
            self.assertEqual(float(row["beside_seconds"]), call)

    def test_what_cannot_be_is_refused_in_three_lines(self):
        bench = ["bench", "all_reduce", "--backend", "threads"]
        self.refused(*bench, "--beside", "attention", says=["beside takes one of nothing, products"])
        self.refused(*bench, "--beside", "products", "--device", "cuda", says=["leave out --device or --beside"])
        self.refused("bench", "all_reduce", "--backend", "simulated:selene", "--ranks", "8", "--dtype", "i32", "--beside",
                     "products", says=["how fast", "multiplies i32"])


if __name__ == "__main__":
    unittest.main()
