"""Tests the peak FLOP rate, to which MFU is relative. The peak must be measured once per machine, and again if a step
exceeds this rate. A busy machine must be reported."""
import glob
import json
import os
import re
import subprocess
import tempfile
import unittest

import h5py

from programs import chorale, ranks, sample, start, thorough


class Peak(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder, self.cache = holder.name, f"{holder.name}/cache"
        self.words = [chorale, "train", "--preset", "tiny", "--threads", "1", "--train-iters", "3", "--global-batch-size",
                      "8", "--eval-samples", "4", "--no-save", "--run-dir", self.folder]

    def train(self, *words, processes=1, **environment):
        """Returns the output of a run and four values from its record: the peak, the description of the peak, the MFU of the
        steps, and the group /ranks."""
        result = ranks(processes, *self.words, *words, **{"XDG_CACHE_HOME": self.cache, **environment})
        self.assertEqual(result.returncode, 0, result.stderr)
        with h5py.File(f"{self.folder}/latest/run.h5") as file:
            facts = {"flops": int(file.attrs["peak_flops"]), "text": file["peak"].asstr()[()], "mfu": file["train/mfu"][:],
                     **{name: file[f"ranks/{name}"][:] for name in ("load", "others", "stolen")}}
        return result.stdout + result.stderr, facts

    def file(self):
        """Returns the path and the text of the machine file, and the peaks in it, in flops per second."""
        (path,) = glob.glob(f"{self.cache}/chorale/machine-*.toml")
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        return path, text, [float(flops) for flops in re.findall(r"(?m)^flops = (\S+)", text)]

    def edit(self, **values):
        path, text, _ = self.file()
        for key, value in values.items():
            text, found = re.subn(rf"(?m)^{key} = .*$", f"{key} = {json.dumps(value)}", text)
            self.assertGreater(found, 0, text)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)

    def test_equal_runs_have_equal_peaks_on_one_rank_and_on_two(self):
        _, first = self.train("--threads", "2")
        self.edit(busy=False)  # otherwise a quiet machine would measure the peak again
        for words, processes in ((["--threads", "2"], 1), ([], 2)):  # both runs use the same cores
            said, again = self.train(*words, processes=processes)
            self.assertEqual(again["flops"], first["flops"])
            self.assertIn(f"matrix products reach {again['flops'] / 1e9:.0f} GFLOP/s in f32 by ", said)
        self.assertEqual(len(self.file()[2]), 1)
        self.edit(measured="1970-01-01T00:00:00Z")
        self.assertIn("measured 1970", self.train("--threads", "2")[0])
        if thorough:
            self.assertNotIn("measured 1970", self.train("--threads", "2", "--measure-peak")[0])
        self.assertNotIn("measured 1970", self.train("--threads", "2", CHORALE_MEASURE_PEAK="1")[0])

    def test_no_step_reaches_more_than_the_peak(self):
        for processes in sample((1, 2), 2):
            self.train(processes=processes)
            self.edit(flops=1.0, busy=False)  # as if measured on a stalled machine
            said, run = self.train(processes=processes)
            self.assertIn("more than the peak that MFU refers to; measured again: ", said)
            self.assertGreater(run["flops"], 1e6)
            self.assertTrue((run["mfu"] > 0).all() and (run["mfu"] <= 1).all(), run["mfu"])
            self.assertGreater(max(self.file()[2]), 1e6)

    def test_a_home_that_cannot_be_written_to_costs_a_measurement_and_no_more(self):
        for environment in sample(({"XDG_CACHE_HOME": "/proc/none"}, {"XDG_CACHE_HOME": "", "HOME": ""}), 2):
            self.assertGreater(self.train(**environment)[1]["flops"], 1e6)

    def test_a_damaged_file_is_left_as_it_is_with_one_warning(self):
        self.assertNotIn("not kept", self.train()[0])
        for key, value, says in (("version", 7, ": version is 7, "), ("machine", "an abacus", ": an abacus; this machine")):
            self.edit(**{key: value})
            path, damaged, _ = self.file()
            said, run = self.train()
            self.assertRegex(said, "(?m)^warning: this peak is not kept, so the next run measures it again: the machine "
                                   f"file .*{says}")
            self.assertEqual(said.count("not kept"), 1, said)
            self.assertGreater(run["flops"], 1e6)
            self.assertEqual(self.file()[1], damaged)
            calibrated = start([chorale, "tune", "all_reduce", "--calibrate", "--backend", "threads"],
                               XDG_CACHE_HOME=self.cache)
            self.assertEqual((calibrated.returncode, calibrated.stderr.count("\n")), (2, 3), calibrated.stderr)
            self.assertIn(path, calibrated.stderr)
            self.assertEqual(self.file()[1], damaged)
            self.edit(**{key: 1 if key == "version" else ""})

    # Two busy loops disturb the ranks enough on a machine with few cores. On a machine with many cores, two loops are a
    # small share of the load, so the test starts more.
    def test_a_busy_machine_is_said_once_and_recorded(self):
        loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 + os.cpu_count() // 20)]
        try:
            said, run = self.train(processes=2)
            self.assertEqual(start([*self.words[:-3], "--run-dir", f"{self.folder}/saved"]).returncode, 0)
            said_by_generate = start([chorale, "generate", "--load", f"{self.folder}/saved/latest", "--tokens", "2"]).stderr
            bench = [chorale, "bench", "all_reduce", "--backend", "threads", "--end", "64", "--out",
                     f"{self.folder}/bench.h5"]
            benched = start(bench)
            simulated = start([chorale, "bench", "all_reduce", "--backend", "simulated:selene", "--end", "64"]).stderr
            tuned = start([chorale, "tune", "all_reduce", "--backend", "threads", "--algorithm", "ring,direct", "--end",
                           "64", "-n", "5", "--tuning", f"{self.folder}/tuning.json"])
            told, tables = [(tuned, "tuning.json")], [benched]
            if thorough:
                calibrated = start([chorale, "tune", "all_reduce", "--calibrate", "--backend", "threads", "--end", "4K",
                                    "-n", "5", "--machine", f"{self.folder}/machine.toml"])
                told.append((calibrated, "machine.toml"))
                tables.append(start([chorale, "bench", "all_reduce", "--end", "64", "--ranks-per-launch", "1", "--launches",
                                     "2"]))
            suite = f"{self.folder}/suite.toml"
            with open(suite, "w", encoding="utf-8") as stream:
                stream.write('[[runs]]\npreset = "tiny"\ntrain-iters = 4\nno-save = true\nthreads = 1\nglobal-batch-size '
                             '= 8\nvary.layout = ["dp1"]\n')
            tables.append(start([chorale, "compare", suite, "--repetitions", "1", "--run-dir", f"{self.folder}/suites"]))
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
        self.assertNotIn("busy", simulated)  # simulated times are not measured
        for table in tables:  # so
            self.assertRegex(table.stdout, r"(?m)^(# )?\S+ was busy: other programs use [0-9.]+ of its \d+ cores ")
        for text in (said, said_by_generate, tuned.stderr, *(table.stderr for table in tables)):
            self.assertEqual(text.count(" busy: other programs "), 1, text)
            self.assertRegex(text, r"(?m)^warning: \S+ (is|was) busy: other programs use [0-9.]+ of its \d+ cores "
                                   r"\(load [0-9.]+\)")
        caution = r", measured on a busy machine: other programs use [0-9.]+ of its \d+ cores"
        for written, file in told:  # read without the warning
            self.assertRegex(written.stdout, f"(?m)^written to .*{file}{caution}")
        self.assertTrue((run["others"] > 0.1).all() and len(run["others"]) == 2, run["others"])
        for record in (f"{self.folder}/bench.h5", f"{self.folder}/suites/latest/run.h5"):
            with h5py.File(record) as file:
                self.assertGreater(file["ranks/others"][0], 0.1)


if __name__ == "__main__":
    unittest.main()
