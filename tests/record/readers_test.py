"""Opens a record with standard readers: h5py, xarray with both engines, ncdump and h5dump."""
import json
import os
import tempfile
import unittest

import h5py
import numpy as np
import xarray

from programs import start, tests_run

groups = ["/", "config", "ranks", "train", "phases", "bench", "empty"]


class Readers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        result = start([tests_run, "[sample-record]"], TEST_FOLDER=cls.folder.name)
        assert result.returncode == 0, result.stdout
        cls.file = os.path.join(cls.folder.name, "run.h5")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_xarray_opens_every_group_with_both_engines(self):
        for engine in ("h5netcdf", "netcdf4"):
            opened = {}
            for group in groups:
                with self.subTest(engine=engine, group=group), \
                        xarray.open_dataset(self.file, group=group, engine=engine) as data:
                    opened[group] = data.load()
            train, phases, bench = opened["train"], opened["phases"], opened["bench"]
            self.assertEqual(opened["/"].attrs["status"], "ok")
            self.assertEqual(opened["/"].attrs["jobsize"], 3)
            np.testing.assert_array_equal(train.step, np.arange(120))
            np.testing.assert_array_equal(train.loss, np.float32(5) / np.arange(1, 121, dtype=np.float32))
            self.assertEqual(train.step.dtype, np.int64)       # integers are not converted to floats
            self.assertEqual(train.time.dtype, np.float64)     # times are not converted to a timedelta
            self.assertEqual(train.time.attrs["units"], "s")
            self.assertEqual(float(train.loss.sel(step=4)), 1.0)
            self.assertEqual(phases.phase_time.dims, ("step", "rank", "phase"))
            self.assertAlmostEqual(float(phases.phase_time[2, 1, 1]), 2.11, places=5)
            self.assertEqual(phases.phase.attrs["flag_meanings"].split(), ["forward", "backward"])
            np.testing.assert_array_equal(bench.op, [0, 1, 2])
            np.testing.assert_array_equal(bench.ranks, [3, 3, 3])
            self.assertEqual(list(bench.note.values), ["Größe ", "", "Größe xx"])
            self.assertEqual(list(opened["ranks"].host.values), ["north", "søuth", ""])
            np.testing.assert_array_equal(opened["ranks"].cpu, [0, 1, -1])
            self.assertEqual(opened["config"].toml.item(), "ranks = 3\n")
            self.assertEqual(opened["empty"].sizes["sample"], 0)

    def test_h5py_finds_a_scale_on_every_dimension_and_a_checksum_on_every_table(self):
        with h5py.File(self.file) as file:
            found = []

            def look(name, item):
                if not isinstance(item, h5py.Dataset):
                    return
                found.append(name)
                for axis in item.dims:
                    self.assertTrue(h5py.h5ds.is_scale(item.id) or len(axis) == 1, f"{name}: no scale")
                if item.chunks and item.dtype.kind != "O":  # HDF5 has no checksums for strings of any length
                    self.assertTrue(item.fletcher32, name)
                self.assertNotIn(item.dtype.kind, "Vb", f"{name}: compound or boolean")
                self.assertFalse(item.dtype.kind == "i" and "_FillValue" in item.attrs, name)

            file.visititems(look)
            self.assertGreaterEqual(len(found), 18)
            for group, rows in (("train", "step"), ("phases", "step"), ("bench", "sample"), ("empty", "sample")):
                self.assertEqual(file[group].attrs["committed_rows"], file[group][rows].shape[0])

    def test_ncdump_and_h5dump_read_all_of_it(self):
        for command in (["ncdump", self.file], ["h5dump", self.file]):
            result = start(command)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("phase_time", result.stdout)

    def test_every_line_of_the_live_log_is_json(self):
        with open(os.path.join(self.folder.name, "metrics.jsonl")) as lines:
            lines = [json.loads(line) for line in lines]
        rows = [line for line in lines if line["table"] == "train"]
        self.assertEqual([row["step"] for row in rows], list(range(120)))
        self.assertEqual(rows[3]["skipped"], "yes")
        self.assertEqual([line["status"] for line in lines if "status" in line], ["running", "ok"])


if __name__ == "__main__":
    unittest.main()
