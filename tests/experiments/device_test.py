"""Tests `--device cuda` as a user sees it. Training, checkpoints and generated texts must be the same as on the host, under
every strategy. Without a GPU, the emulated GPU is used. Host code that accesses the memory of the emulated GPU crashes."""
import glob
import json
import os
import re
import pathlib
import tempfile
import unittest

import numpy as np
import xarray

from programs import backends, build, chorale, ranks, sample, start, thorough, without_mpi

small = ["--num-layers", "2", "--hidden-size", "32", "--num-attention-heads", "2", "--seq-length", "16", "--vocab-size",
         "64", "--global-batch-size", "4", "--lr", "1e-2", "--lr-warmup-iters", "0", "--eval-samples", "4", "--threads", "1"]
emulation = os.path.abspath(f"{build}/emulated/chorale_cuda.so")
real = bool(glob.glob("/dev/nvidia[0-9]*"))
plugin = {} if real else {"CHORALE_CUDA_PLUGIN": emulation}


def weights(run):
    """Returns the contents of all safetensors files in a run's newest checkpoint."""
    parts = sorted(glob.glob(f"{run}/**/rank-*.safetensors", recursive=True))
    assert parts, f"{run} has saved nothing"
    return [pathlib.Path(part).read_bytes() for part in parts]


class Device(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def train(self, device, *words, processes=1, steps=3, **environment):
        """Trains. Returns the folder, the losses and the gradient norms of the run."""
        folder = os.path.join(self.folder, device)
        result = ranks(processes, chorale, "train", *small, "--train-iters", str(steps), "--device", device, *words,
                       "--run-dir", folder, **plugin, **environment)
        self.assertEqual(result.returncode, 0, f"{device} {words}: {result.stderr}")
        run = os.path.realpath(os.path.join(folder, "latest"))
        with xarray.open_dataset(f"{run}/run.h5", group="train") as train:
            return run, [*train.loss.values, *train.grad_norm.values]

    def same_on_both(self, *words, processes=1, tolerance=1e-5, ways=[[]]):
        """Trains on the host, and then once on the device for each item of `ways`. Returns the folders of the run on the
        host and of the last run on the device."""
        host = self.train("cpu", *words, processes=processes)
        self.assertEqual(len(host[1]), 6)
        for way in ways:
            device = self.train("cuda", *words, *way, processes=processes)
            for a, b in zip(host[1], device[1]):
                both_overflowed = np.isnan(a) and np.isnan(b)  # while f16 searches for its loss scale
                self.assertTrue(both_overflowed or abs(a - b) < tolerance * abs(a),
                                f"{words} {way}: {host[1]} on the host, {device[1]} on the device")
        return host[0], device[0]

    def test_every_strategy_trains_the_same_model(self):
        by_nccl, staged = ["--backend", "nccl"], ["--backend", "shm"]
        for layout, ways in sample([("dp2.z3", [by_nccl]), ("dp2.z1", [by_nccl, staged]), ("dp2.z2", [by_nccl, staged]),
                                    ("pp2", [staged]), ("tp2", [by_nccl, staged]), ("tp2.sp", [by_nccl, staged]),
                                    ("dp2", [[*by_nccl, "--algorithm", name] for name in ("ring", "native")]),
                                    ("dp2", [staged, [*by_nccl, "--algorithm", "direct"]]), ("dp2.z3", [staged]),
                                    ("pp2", [by_nccl])], 3):
            self.same_on_both("--layout", layout, "--no-save", processes=2, ways=ways)
        self.same_on_both("--layout", "dp2.tp2.z3.sp", "--backend", "mpi,tp=nccl", "--no-save", processes=4)
        if thorough:
            self.same_on_both("--layout", "dp2.tp2.pp2", "--no-save", processes=8, ways=[by_nccl])

    @unittest.skipIf(real, "needs a CUDA-aware library on a real GPU")
    def test_libraries_that_take_device_buffers_are_given_them(self):
        for layout, backend in sample((("dp2.z2", "ucx"), ("dp2.z2", "mpi"), ("pp2", "mpi")), 2):
            words = ["--no-save", "--layout", layout]
            _, host = self.train("cpu", *words, processes=2)
            _, direct = self.train("cuda", *words, "--backend", backend, processes=2, CHORALE_CUDA_AWARE=backend,
                                   EMULATED_OPEN="1")
            np.testing.assert_allclose(direct, host, rtol=1e-5)

    def test_info_says_how_device_buffers_travel(self):
        for said, mpi in (("mpi", "direct (the library is CUDA-aware)"), ("none", "staged through pinned memory")):
            result = start([chorale, "info", "--format", "json"], CHORALE_CUDA_AWARE=said, **plugin)
            self.assertEqual(result.returncode, 0, result.stderr)
            details = {backend["name"]: backend.get("detail", "") for backend in json.loads(result.stdout)["backends"]}
            self.assertIn(f"device buffers: {mpi}", details["mpi"])
            if details["ucx"]:
                self.assertIn("device buffers: staged through pinned memory", details["ucx"])

    def test_libraries_that_are_said_to_take_device_buffers_have_a_name_that_is_known(self):
        said = ('error: CHORALE_CUDA_AWARE: unknown backend\n  "shm" in "shm"\n'
                '  set it to none, or to a comma-separated list of mpi, ucx, such as mpi,ucx\n')
        train = ["train", *small, "--no-save", "--run-dir", self.folder, "--backend"]
        for words in (["info"], *([*train, backend] for backend in backends() if backend != "shm")):
            result = ranks(1 if words == ["info"] else 2, chorale, *words, CHORALE_CUDA_AWARE="shm")
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(said, result.stderr)

    def test_tensors_of_the_host_go_over_nccl(self):
        run, by_nccl = self.train("cpu", "--no-save", "--layout", "dp2.z1", "--backend", "nccl", processes=2)
        _, by_shm = self.train("cpu", "--no-save", "--layout", "dp2.z1", "--backend", "shm", processes=2)
        np.testing.assert_allclose(by_nccl, by_shm, rtol=1e-5)

    def test_families_types_dropout_and_recomputation(self):
        for words, processes, tolerance in sample([
                ("--family llama --num-query-groups 1", 1, 1e-5), ("--dropout 0.2 --recompute full", 1, 1e-5),
                ("--dropout 0.1 --recompute selective --dtype bf16", 1, 1e-2),
                ("--dtype bf16 --no-master-weights --layout dp2.z1", 2, 1e-2),
                ("--dtype f16 --optimizer sgd", 1, 1e-2)], 2):
            self.same_on_both("--no-save", *words.split(), processes=processes, tolerance=tolerance)

    def test_experts(self):
        experts = ["--family", "llama", "--num-experts", "4", "--moe-router-topk", "2", "--moe-ffn-hidden-size", "24",
                   "--moe-aux-loss-coeff", "0.01", "--no-save"]
        drops, exact = ["--moe-expert-capacity-factor", "0.8"], ["--numerics", "exact"]
        by_steps = ["--moe-router-load-balancing-type", "global_aux_loss"]
        by_biases = ["--moe-router-score-function", "sigmoid", "--moe-router-enable-expert-bias",
                     "--moe-router-bias-update-rate", "0.02"]
        bits = 1e-15  # the tolerance where values must be bit-identical
        for words, processes, tolerance in sample([
                ([*drops, *exact], 1, bits), (drops, 1, 1e-5), ([*by_steps, *by_biases], 1, 1e-5),
                ([*by_steps, *by_biases, *exact, "--layout", "dp2.ep2.z3"], 2, bits), (["--dtype", "bf16"], 1, 1e-2),
                ([*exact, "--routing", "zipf", "--layout", "dp2.ep2.z2"], 2, bits)], 3):
            self.same_on_both(*experts, *words, processes=processes, tolerance=tolerance)
        self.same_on_both(*experts, *drops, *exact, "--layout", "dp2.ep2", processes=2, tolerance=bits,
                          ways=sample([["--backend", "nccl"], ["--backend", "shm"]], 2))

    def test_checkpoints_and_texts_are_those_of_the_host(self):
        balanced_experts = ["--num-experts", "4", "--moe-ffn-hidden-size", "24", "--moe-router-score-function", "sigmoid",
                            "--moe-aux-loss-coeff", "0.01", "--moe-router-load-balancing-type", "global_aux_loss",
                            "--moe-router-enable-expert-bias", "--moe-router-bias-update-rate", "0.05"]
        for words in sample((balanced_experts, []), 2):
            _, run = self.same_on_both(*words, "--layout", "dp2.z1", processes=2)
            texts = {}
            for device in ("cpu", "cuda"):  # the device's checkpoint is resumed on the host and on the device
                self.train(device, *words, "--load", run, "--no-save", steps=4)
                result = start([chorale, "generate", "--load", run, "--device", device, "--tokens", "8", "--temperature",
                                "0", "--dtype", "f32", "--prompt", "1,2,3"], **plugin)
                self.assertEqual(result.returncode, 0, result.stderr)
                texts[device] = result.stdout
            self.assertEqual(texts["cpu"], texts["cuda"])

    def test_the_record_says_where_it_was_and_what_carried_it(self):
        for device, place, backend in (("cuda", "shared by 2 ranks", "nccl"), ("cpu", "cpu", "shm")):
            run, _ = self.train(device, "--no-save", processes=2)
            with xarray.open_dataset(f"{run}/run.h5") as record:
                self.assertIn(place, str(record.device.values))
                self.assertEqual("memory registered with NCCL" in str(record.device.values), backend == "nccl")
                self.assertEqual(str(record.backends.values), backend)  # chosen by --backend auto

    def test_what_products_work_in_is_planned_and_counted(self):
        held = {}
        for device in ("cpu", "cuda"):
            run, _ = self.train(device, "--no-save", "--layout", "dp2", processes=2)
            with xarray.open_dataset(f"{run}/run.h5", group="memory") as memory:
                held[device] = [memory[name].isel(step=-1, category=5, missing_dims="ignore").values
                                for name in ("planned", "peak")]
                self.assertTrue((held[device][0] == held[device][1]).all(), held)
        self.assertTrue((np.subtract(held["cuda"], held["cpu"]) == (32 << 20 if real else 4096)).all(), held)

    def test_bench_measures_buffers_on_the_device(self):
        result = ranks(2, chorale, "bench", "all_reduce", "all_gather", "--device", "cuda", "--backend", "nccl,shm",
                       "--algorithm", "ring", "-b", "1K", "-e", "64K", "-f", "64", "-n", "3", "--format", "json", **plugin)
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = json.loads(result.stdout)
        self.assertEqual(len(rows), 16)
        self.assertEqual({(row["memory"], row["wrong"]) for row in rows}, {("device", 0)})

    @unittest.skipIf(real, "the memory of a real GPU cannot be limited")
    def test_what_does_not_fit_ends_in_a_layout_that_does(self):
        wide = [*small, "--hidden-size", "256", "--no-save", "--train-iters", "1", "--device", "cuda", "--backend", "shm",
                "--run-dir", self.folder]  # each replica needs 25.6 MiB
        foreseen = (r"error: a rank has too little memory for its \w+\n  dp2, a rank of stage 0: peak 25\.6 MiB .* its "
                    r"share of the GPU's free memory is 20\.0 MiB\n  try (?P<flags>--place \S+), or try "
                    r"(?P<layout>\S+?),? .*\n")
        # two ranks share the GPU
        too_late = (r"error: memory refused: .* for \w+\n  cuda:0 memory: Cannot allocate memory, .* free; "
                    r"requested \d+ bytes, "
                    r"held now: params .*\n  try (?P<layout>\S+?),? .*\n  rank \d of 2 ")
        for memory, others, says, code in ((40, 0, foreseen, 2), (52, 28, too_late, 1)):
            bytes_there = {"EMULATED_BYTES": str(memory << 20), "EMULATED_BYTES_OF_OTHERS": str(others << 20)}
            result = ranks(2, chorale, "train", *wide, "--layout", "dp2", **bytes_there, **plugin)
            self.assertEqual(result.returncode, code, result.stderr)
            said = re.search(says, result.stderr)
            self.assertTrue(said, result.stderr)
            self.assertTrue(code != 2 or result.stderr.count("error: ") == 1, result.stderr)
            fixes = [["--layout", said["layout"]]]
            if code == 2:
                fixes.append(["--layout", "dp2", *said["flags"].split()])
            for fix in fixes:
                result = ranks(2, chorale, "train", *wide, *fix, **bytes_there, **plugin)
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_plugin_of_other_sources_is_refused(self):
        mark = pathlib.Path(build, "plugin_mark.stamp").read_bytes().strip().strip(b'"')
        stale = pathlib.Path(self.folder, "stale.so")
        stale.write_bytes(pathlib.Path(emulation).read_bytes().replace(mark, mark[::-1]))
        for library, words in ((stale, "the CUDA plugin was built from different sources (make all builds it)"),
                               ("libm.so.6", "the CUDA plugin was built from different sources"),  # libm has no build mark
                               ("/nowhere.so", "/nowhere.so: cannot open shared object file")):
            for command, code in ((["train", "--preset", "tiny", "--device", "cuda"], 2), (["info"], 0)):
                result = start([chorale, *command], CHORALE_CUDA_PLUGIN=str(library))
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn(words, result.stderr + result.stdout)

    def test_a_file_is_refused_before_mpi_starts(self):
        result = start([chorale, "train", *small, "--run-dir", self.folder, "--device", "cuda", "--place", "optimizer=file",
                        "--offload-folder", self.folder], **plugin, **without_mpi)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 3, result.stderr)
        self.assertIn("error: a GPU offloads to the host, not to a file", result.stderr)
        self.assertIn("--place …=host", result.stderr)

    @unittest.skipIf(real, "there is a GPU")
    def test_no_device_is_said_before_anything_starts(self):
        for command in (["train", "--preset", "tiny"], ["generate", "--load", "nowhere"], ["prove"]):
            result = start([chorale, *command, "--device", "cuda"])
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("error: no GPU to compute on", result.stderr)
            self.assertIn("--device cpu", result.stderr)

    def test_exact_numerics_have_the_bits_of_the_host(self):
        for processes, words in sample(((2, ["--layout", "dp2.z2"]), (1, ["--dropout", "0.1"]), (2, ["--layout", "tp2.sp"]),
                                        (2, ["--layout", "pp2", "--family", "llama"])), 3):
            (host, seen), (device, found) = (self.train(where, "--numerics", "exact", *words, processes=processes)
                                             for where in ("cpu", "cuda"))
            self.assertEqual(seen, found)
            self.assertEqual(weights(host), weights(device))

    def test_exact_numerics_have_the_same_bits_on_every_layout(self):
        shape = ["--num-layers", "2", "--hidden-size", "24", "--num-attention-heads", "6", "--seq-length", "16",
                 "--vocab-size", "61", "--global-batch-size", "6"]
        for family, layouts in (("gpt2",
                                 "dp2.z3,dp1,dp1.tp2.sp,dp1.pp2,dp3.z1,dp1.tp3,dp2.tp2.z2.sp,dp2.pp2.z1,dp1.tp2.pp2"),
                                ("llama", "dp1.tp3,dp2,dp2.tp2.z3.sp")):
            layouts = ",".join(sample(layouts.split(","), 3))
            result = ranks(4, chorale, "prove", *shape, "--steps", "2", "--device", "cuda", "--layouts", layouts,
                           "--run-dir", self.folder, "--family", family, **plugin)
            self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
            self.assertRegex(result.stdout, r"(\d+) of \1 equal to one rank in 2 steps")
        with xarray.open_dataset(os.path.join(self.folder, "latest", "run.h5")) as record:
            self.assertNotEqual(str(record.device.values), "cpu")

    def test_a_sum_that_grows_too_large_on_the_device_is_named(self):
        result = ranks(1, chorale, "train", *small, "--device", "cuda", "--numerics", "exact", "--lr", "100",
                       "--train-iters", "9", "--no-save", "--run-dir", self.folder, **plugin)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("block.0.attention.out output: numbers have grown too large to be summed exactly", result.stderr)


if __name__ == "__main__":
    unittest.main()
