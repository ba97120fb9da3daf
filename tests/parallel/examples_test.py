"""Builds the programs of examples/ as docs/library.md describes, runs them on 1 to 4 ranks, and checks their output. The
example that implements training by hand must have the same losses as the example that trains with the library. The test
also breaks examples on purpose. The checks inside these examples must then fail."""
import glob
import json
import os
import re
import shutil
import sys
import tempfile
import unittest

import h5py

from programs import backends, build, chorale, launch, only_in_test_all, ranks, sample, start, thorough

mpicxx = os.path.basename(launch[0]).replace("mpirun", "mpicxx")
sources = sorted(glob.glob("examples/*.cpp"))


# Executes the code of a notebook as Jupyter would, and prints the data of its figures.
run_notebook = """
import json, sys
import matplotlib.pyplot as plt
with open(sys.argv[1]) as file:
    cells = json.load(file)["cells"]
names = {}
for cell in cells:
    if cell["cell_type"] == "code":
        exec("".join(cell["source"]), names)
axes = [plt.figure(number).axes[0] for number in plt.get_fignums()]
print(json.dumps({"titles": [drawn.get_title() for drawn in axes], "loss": list(axes[0].lines[0].get_ydata()),
                  "ms": [bar.get_width() for bar in axes[1].patches], "mib": [bar.get_width() for bar in axes[2].patches]}))
"""


def text_of(example):
    with open(example, encoding="utf-8") as file:
        text = file.read()
    if not example.endswith(".ipynb"):
        return text
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])


def losses(result):
    return re.findall(r"(?m)^step +(\d+) +loss (\S+)$", result.stdout)


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder = holder.name
        for source in sources:
            cls.built(source, os.path.splitext(os.path.basename(source))[0])

    @classmethod
    def built(cls, source, name):
        with open("docs/library.md", encoding="utf-8") as page:
            command = re.search(r"(?m)^mpicxx .*examples/1_all_reduce.cpp.*$", page.read()).group()
        command = command.replace("mpicxx", mpicxx).replace("build/", f"{build}/")
        command = command.replace("examples/1_all_reduce.cpp", source).replace("-o all_reduce", f"-o {cls.folder}/{name}")
        result = start(["bash", "-c", command], limit_seconds=300)
        if result.returncode != 0 or result.stderr:
            raise AssertionError(f"{command}\n{result.stdout}{result.stderr}")

    def run_on(self, count, name, *words):
        result = ranks(count, f"{self.folder}/{name}", *words)
        self.assertEqual(result.returncode, 0, f"{name} {words} on {count} ranks\n{result.stdout}{result.stderr}")
        return result

    def fails_when(self, name, line, becomes, says, count=2):
        with open(f"examples/{name}.cpp", encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(text.count(line), 1, line)
        broken = f"{self.folder}/broken.cpp"
        with open(broken, "w", encoding="utf-8") as file:
            file.write(text.replace(line, becomes))
        self.built(broken, "broken")
        result = ranks(count, f"{self.folder}/broken")
        self.assertEqual(result.returncode, 3, result.stdout + result.stderr)
        self.assertIn(says, result.stderr)

    def test_the_list_of_examples_names_each_and_each_has_numbered_steps(self):
        with open("examples/README.md", encoding="utf-8") as page:
            listed = re.findall(r"\]\((\d_\w+\.\w+)\)", page.read())
        files = [*sources, *glob.glob("examples/*.py"), *glob.glob("examples/*.ipynb")]
        self.assertEqual(listed, sorted(os.path.basename(file) for file in files))
        for number, file in enumerate(sorted(files), 1):
            text = text_of(file)
            self.assertRegex(text, rf"^(//|#|\"\"\") ?{number}\. ", file)
            steps = [int(step) for step in re.findall(r"(?m)^ *(?://|#) Step (\d+): ", text)]
            self.assertEqual(steps, list(range(1, len(steps) + 1)), file)
            self.assertGreaterEqual(len(steps), 4, file)

    def test_1_sums_on_every_backend(self):
        for count in (1, 2, 3, 4):
            for backend in backends() if thorough else backends()[count % 2:][:1]:
                with self.subTest(ranks=count, backend=backend):
                    self.assertIn(f"{backend}, {count} ranks: every x[i] is {count * (count + 1) // 2};",
                                  self.run_on(count, "1_all_reduce", backend, "10000").stdout)
        self.fails_when("1_all_reduce", "world.all_reduce(vector);\n", "\n", "the sum is wrong")

    def test_2_an_algorithm_of_ones_own_is_proved_drawn_and_run(self):
        for count in (1, 2, 3, 4):
            for backend in backends() if thorough else backends()[count % 2:][:1]:
                with self.subTest(ranks=count, backend=backend):
                    out = self.run_on(count, "2_own_algorithm", backend).stdout
                    self.assertIn("proved for 1 to 16 ranks\n", out)
                    self.assertEqual(len(re.findall(r"(?m)^round ", out)), 2 * (count - 1), out)
                    self.assertIn(f"run on {count} ranks: every element is {count * (count + 1) // 2},", out)
        if thorough:
            self.fails_when("2_own_algorithm", "if (p.rank == k - 1) s.recv(k, output(0, n));", "", "the algorithm is wrong")

    def test_3_and_4_have_the_same_losses_on_any_ranks_and_layout(self):
        expected = losses(self.run_on(1, "3_train_by_hand"))
        self.assertEqual(len(expected), 20)
        self.assertLess(float(expected[-1][1]), float(expected[0][1]) - 0.1)
        for count in sample((2, 3, 4), 2):
            with self.subTest(ranks=count):
                result = self.run_on(count, "3_train_by_hand")
                self.assertEqual(losses(result), expected)
                self.assertIn(f"{count} replicas with the same ", result.stdout)
        for count, layout in sample(((1, ""), (2, ""), (3, ""), (4, "dp2.tp2.z1.sp"), (2, "tp2"), (4, ""), (2, "pp2"),
                                     (4, "tp2.pp2"), (3, "dp3.z3")), 3):
            with self.subTest(ranks=count, layout=layout):
                result = self.run_on(count, "4_train_with_the_library", *[layout] * bool(layout))
                self.assertEqual(losses(result), expected)
                held, planned = map(float, re.search(r"held (\S+) MiB at most, (\S+) MiB were planned",
                                                     result.stdout).groups())
                self.assertLessEqual(held, planned)
                if "pp" not in layout:  # with pp, the memory of results in transit depends on the speed of both stages
                    self.assertEqual(held, planned)

    @only_in_test_all("another compilation; the check of example 1 fails the same way")
    def test_3_fails_without_the_all_reduce(self):
        self.fails_when("3_train_by_hand", "world.all_reduce(p.gradient);", ";", "replicas differ")

    @only_in_test_all("another compilation; the check of example 1 fails the same way")
    def test_4_fails_when_nothing_is_learned(self):
        self.fails_when("4_train_with_the_library", ".peak = 3e-3", ".peak = 0, .minimum = 0", "nothing was learned")

    def test_a_wrong_start_is_refused(self):
        for count, name, words, says in ((5, "3_train_by_hand", [], "the batch cannot be divided evenly among the ranks"),
                                         (2, "4_train_with_the_library", ["tp3"], "try "),
                                         (2, "2_own_algorithm", ["shn"], 'did you mean "shm"?')):
            with self.subTest(name=name):
                result = ranks(count, f"{self.folder}/{name}", *words)
                self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
                self.assertIn(says, result.stderr)

    def test_5_reads_a_record_and_refuses_a_damaged_one(self):
        for count in sample((1, 2, 3, 4), 2):
            with self.subTest(ranks=count):
                runs = f"{self.folder}/runs{count}"
                trained = ranks(count, chorale, "train", "--preset", "tiny", "--train-iters", "15", "--global-batch-size",
                                "12", "--threads", "1", "--eval-samples", "4", "--no-save", "--run-dir", runs)
                self.assertEqual(trained.returncode, 0, trained.stderr)
                file = f"{runs}/latest/run.h5"
                read = start([sys.executable, "examples/5_read_a_record.py", file])
                self.assertEqual(read.returncode, 0, read.stderr)
                with h5py.File(file) as record:
                    last = record["train/loss"][14]
                self.assertRegex(read.stdout, rf"(?m)^{count} ranks on .*: ok$")
                self.assertRegex(read.stdout, rf"(?m)^15 steps, \d+ tokens/s, the last loss {last:.4f}$")
                self.assertEqual(len(re.search(r"(?m)^  forward +(.*)$", read.stdout).group(1).split()), count)
        suite = start([chorale, "compare", "--preset", "tiny", "--layouts", "dp1", "--repetitions", "1",
                       "--train-iters", "4", "--threads", "1", "--global-batch-size", "4", "--eval-samples", "4",
                       "--run-dir", f"{self.folder}/suites"])
        self.assertEqual(suite.returncode, 0, suite.stderr)
        read = [sys.executable, "examples/5_read_a_record.py", f"{self.folder}/suites/latest/run.h5"]
        self.assertRegex(start(read).stdout, r"(?m)^a suite of 1 runs; this is dp1-r1$(.*\n)*4 steps, \d+ tokens/s, ")
        self.assertIn("no run is called dp2: name one of dp1-r1", start([*read, "dp2"]).stderr)
        copy = f"{self.folder}/damaged.h5"
        shutil.copy(file, copy)
        with h5py.File(copy, "r+") as record:
            record["train/loss"][3] = float("nan")
        damaged = start([sys.executable, "examples/5_read_a_record.py", copy])
        self.assertEqual(damaged.returncode, 1, damaged.stdout)
        self.assertIn("the record is damaged", damaged.stderr)
        with open(f"{self.folder}/h5py.py", "w") as absent:
            absent.write('raise ImportError("No module named h5py")\n')
        without = start([sys.executable, "examples/5_read_a_record.py", file], PYTHONPATH=self.folder)
        self.assertEqual(without.returncode, 1, without.stdout)
        self.assertEqual(without.stderr, "error: h5py is missing\n  No module named h5py\n"
                                         "  apt install python3-h5py, or pip install h5py\n")

    def test_6_the_notebook_is_stored_without_outputs_and_draws_a_record(self):
        notebook = "examples/6_look_at_a_run.ipynb"
        with open(notebook, encoding="utf-8") as file:
            cells = [cell for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
        self.assertTrue(all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells))
        runs = f"{self.folder}/drawn"
        trained = ranks(2, chorale, "train", "--preset", "tiny", "--train-iters", "6", "--layout", "dp2", "--threads", "1",
                        "--global-batch-size", "4", "--eval-samples", "4", "--no-save", "--run-dir", runs)
        self.assertEqual(trained.returncode, 0, trained.stderr)
        record = os.path.realpath(f"{runs}/latest/run.h5")
        result = start([sys.executable, "-Wignore", "-c", run_notebook, notebook], RECORD=record, MPLBACKEND="Agg",
                       MPLCONFIGDIR=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        said = result.stdout.splitlines()
        self.assertEqual(said[1], "ok")
        shown = json.loads(said[-1])
        self.assertEqual(shown["titles"], ["Training loss", "Where a step's time goes", "Bytes sent"])
        with h5py.File(record) as file:
            self.assertEqual(shown["loss"], list(file["train/loss"][:]))
            sent, plan = (file[f"traffic/bytes_{name}"][:].clip(min=0).sum(axis=0) for name in ("measured", "predicted"))
            means = file["phases/phase_time"][2:].mean(axis=0) * 1000
            names = file["phases/phase"].attrs["flag_meanings"].decode().split()
        both = [column[plan > 0] for column in (sent, plan)]
        self.assertAlmostEqual(sum(shown["mib"]) * 2**20, sum(column.sum() for column in both), delta=1)
        self.assertGreater(len(shown["mib"]), 2)
        drawn = [column for column, name in enumerate(names) if name not in ("comm_hidden", "file_exposed", "file_hidden")]
        self.assertAlmostEqual(sum(shown["ms"]), means[:, drawn].sum(), places=6)


if __name__ == "__main__":
    unittest.main()
