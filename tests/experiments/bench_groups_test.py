"""Tests `chorale bench --groups` as a user sees it: tables, records, simulated machines and refusals."""
import csv
import json
import shutil
import unittest

import h5py

from in_folder import InFolder
from programs import chorale, launch, ranks, start

quick = ["-b", "1K", "-e", "1K", "-n", "3", "-w", "1", "--format", "json"]


class BenchGroups(InFolder):
    def rows_of(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_groups_of_processes_are_right_on_every_backend(self):
        for layout in ([], ["--strided"]):
            rows = self.rows_of(ranks(4, chorale, "bench", "all_reduce", "all_gather", "--backend", "all", "--algorithm",
                                      "all", "--groups", "2", "--cache", "cold" if layout else "hot", *layout, *quick))
            self.assertIn("native", {row["algorithm"] for row in rows})
            self.assertTrue({"shm", "mpi"} <= {row["backend"] for row in rows})
            for row in rows:
                self.assertEqual([row[key] for key in ("wrong", "ranks", "groups", "strided")], [0, 2, 2, bool(layout)], row)
                if row["algorithm"] != "native":
                    self.assertEqual(row["bytes_sent"], row["bytes_predicted"], row)

    def test_the_table_says_how_many_groups_there_are(self):
        command = [chorale, "bench", "all_reduce", "--backend", "threads", "--ranks", "4", "--in-place", "no", *quick[:-2]]
        for words, says in ((["--groups", "2"], "2 groups, each of 2 ranks, threads, out of place\n"),
                            (["--groups", "2", "--strided"], "2 strided groups, each of 2 ranks, threads, out of place\n"),
                            ([], "sum, 4 ranks, threads, out of place\n")):
            self.assertIn(says, start([*command, *words]).stdout)

    def test_groups_are_recorded_and_reports_do_not_mix_them_with_single_groups(self):
        for name, words in (("one", []), ("two", ["--groups", "2"])):
            count = "4" if words else "2"
            result = start([chorale, "bench", "all_reduce", "--backend", "threads", "--ranks", count, "--in-place", "no",
                            *words, *quick, "--out", f"{self.folder}/{name}.h5"])
            self.assertEqual(result.returncode, 0, result.stderr)
        with h5py.File(f"{self.folder}/two.h5") as file:
            self.assertEqual((list(file["series/groups"]), list(file["series/ranks"])), ([2], [2]))
            self.assertEqual(len(file["samples/time"]), 4 * 3)
        self.refused("report", f"{self.folder}/one.h5", "--compare", f"{self.folder}/two.h5",
                     says=["no metric in common"])
        shutil.copy(f"{self.folder}/one.h5", f"{self.folder}/old.h5")
        with h5py.File(f"{self.folder}/old.h5", "a") as file:  # a record of a program without these columns
            for name in ("groups", "strided", "p99", "max"):
                del file[f"series/{name}"]
        same = self.run_it("report", f"{self.folder}/old.h5", "--compare", f"{self.folder}/one.h5")
        self.assertRegex(same, r"(?m)^all_reduce threads auto f32 1\S* KiB, 2 ranks: latency ")

    def test_a_suite_compares_only_equal_groups(self):
        suite = f"{self.folder}/groups.toml"
        with open(suite, "w") as file:
            file.write('[[runs]]\ncommand = "bench"\nbackend = "simulated:selene"\nranks = 8\nin-place = "no"\n'
                       'begin = 65536\nend = 65536\nvary.algorithm = ["ring", "direct"]\nvary.groups = [1, 2]\n')
        text = self.run_it("compare", suite, "--run-dir", self.folder)
        for question in ("8 ranks, 1 group", "4 ranks, 2 groups"):
            self.assertRegex(text, rf"(?m)^all_reduce, {question} .*simulated:selene \w+ .*simulated:selene \w+ ")

    def test_launches_of_groups_are_merged(self):
        rows = self.rows_of(start([chorale, "bench", "--backend", "shm", "--groups", "2", "--launches", "2",
                                   "--ranks-per-launch", "4", *quick], MPIRUN=" ".join(launch)))
        self.assertEqual({(row["groups"], row["ranks"], row["launches"], row["wrong"]) for row in rows}, {(2, 2, 2, 0)})

    def test_simulated_groups_share_the_adapters_of_their_hosts(self):
        def seconds(count, *words):
            text = self.run_it("bench", "all_reduce", "--backend", "simulated:selene", "--algorithm", "ring", "--in-place",
                               "no", "-b", "64M", "-e", "64M", "--ranks", str(count), *words, "--format", "csv")
            row, = csv.DictReader(text.splitlines())
            size = int(row["ranks"])
            self.assertEqual(int(float(row["bytes_sent"])), count // size * 2 * (size - 1) * (64 << 20))
            return float(row["seconds"]), float(row["predicted_seconds"])
        within, _ = seconds(8)  # a host has eight accelerators, each with links of its own
        self.assertEqual(seconds(16, "--groups", "2")[0], within)
        across, closed = seconds(16, "--groups", "8", "--strided")  # each group has a rank on both hosts
        self.assertGreater(across, within)
        self.assertAlmostEqual(across / closed, 1, places=2)

    def test_groups_that_cannot_be_are_refused_in_three_lines(self):
        bench = ["bench", "all_reduce", "--backend", "threads", "--ranks", "4"]
        self.refused(*bench, "--groups", "3", says=["cannot be divided into equal groups", "--groups 3: 4 ranks",
                                                    "take a divisor of 4, or start a multiple of 3 ranks"])
        self.refused(*bench[:4], "--hosts", "3,1", "--groups", "2", says=["spread over the hosts in different ways",
                                                                        "ranks 0,1 are on 1 host; ranks 2,3 are on 2 hosts"])
        self.refused(*bench, "--strided", says=["--strided needs --groups"])
        self.refused(*bench, "--groups", "0", says=["groups"])
        self.refused("bench", "all_reduce", "--backend", "simulated:selene", "--ranks", "8", "--groups", "3",
                     says=["--groups 3: 8 ranks"])
        result = ranks(3, chorale, "bench", "--backend", "shm", "--groups", "2")
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertEqual(result.stderr.count("--groups 2: 3 ranks"), 1)


if __name__ == "__main__":
    unittest.main()
