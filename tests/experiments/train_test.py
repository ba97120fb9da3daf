"""Tests `chorale train`, `generate` and `export` as a user sees them. Covers records, bit-identical resumed runs, generated
texts, and errors of three lines."""
import glob
import json
import os
import pty
import re
import signal
import subprocess
import tempfile
import unittest

import h5py
import xarray

from programs import chorale, finish, launch, ranks, rest_of, sample, spawn, start, thorough, without_mpi

tiny = ["--preset", "tiny", "--threads", "1", "--eval-samples", "4", "--global-batch-size", "8"]


def train(folder, *words):
    result = start([chorale, "train", *tiny, *words, "--run-dir", folder])
    assert result.returncode == 0, result.stderr
    return os.path.realpath(os.path.join(folder, "latest"))


def weights(run, step):
    with open(f"{run}/checkpoints/step-{step}/rank-0.safetensors", "rb") as file:
        return file.read()


class Train(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def refused(self, *words, says, code=2):
        result = start([chorale, *words])
        self.assertEqual(result.returncode, code, result.stderr)
        errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, result.stderr)
        for part in says:
            self.assertIn(part, result.stderr)

    def test_results_go_to_stdout_and_warnings_to_stderr(self):
        words = [chorale, "train", *tiny, "--train-iters", "20", "--no-save", "--run-dir", self.folder]
        result = start(words)
        for said in ("dp1: 0.94 million parameters", "\nstep 10/20  loss ", "\nstep 20/20  loss ",
                     "\nstep 20: held-out loss ", "\nrecorded in "):
            self.assertIn(said, result.stdout)
        self.assertNotIn("fragmented", result.stdout)
        self.assertEqual([line for line in result.stderr.splitlines() if not line.startswith("warning: ")], [])
        quiet = start([*words, "--log-level", "error"])
        self.assertEqual((quiet.returncode, quiet.stdout, quiet.stderr), (0, "", ""))

    def test_on_a_terminal_the_progress_line_makes_way_for_the_results(self):
        mine, theirs = pty.openpty()
        process = spawn([chorale, "train", *tiny, "--train-iters", "20", "--no-save", "--run-dir", self.folder],
                        stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"})
        os.close(theirs)
        seen = rest_of(mine).decode()
        finish(process)
        self.assertEqual(process.returncode, 0, seen)
        self.assertIn("\rtrain  1/20 ", seen)
        left = [line.rsplit("\x1b[K", 1)[-1] for line in seen.replace("\r\n", "\n").split("\n")]  # what stays visible
        for said in ("step 10/20  loss ", "step 20/20  loss ", "step 20: held-out loss "):
            self.assertEqual(sum(line.startswith(said) for line in left), 1, seen)

    def test_a_run_is_recorded_step_by_step(self):
        run = train(self.folder, "--train-iters", "12", "--eval-interval", "5", "--lr", "3e-3")
        with xarray.open_dataset(f"{run}/run.h5", group="train") as steps:
            self.assertEqual(list(steps.step.values), list(range(1, 13)))
            self.assertLess(float(steps.loss[-1]), float(steps.loss[0]))
            self.assertEqual(int(steps.tokens[0]), 8 * 24)
            self.assertTrue((steps.step_time > 0).all() and (steps.mfu > 0).all() and (steps.skipped == 0).all())
        with h5py.File(f"{run}/run.h5") as file:
            self.assertEqual(list(file["eval/step"]), [5, 10, 12])
            self.assertEqual(file["phases/phase_time"].shape, (12, 1, 10))
            self.assertEqual(file["memory/bytes"].shape, (12, 1, 7))
            parameters = 943296
            self.assertEqual(list(file["memory/bytes"][-1, 0, :3]), [4 * parameters, 4 * parameters, 8 * parameters])
            self.assertIn(file.attrs["status"], ("ok", b"ok"))
        with open(f"{run}/metrics.jsonl") as lines:
            self.assertEqual(sum(json.loads(line)["table"] == "train" for line in lines), 12)

    def test_a_backend_for_one_rank_has_no_effect_and_that_is_said(self):
        words = [chorale, "train", *tiny, "--train-iters", "1", "--no-save", "--run-dir", self.folder]
        says = "backend shm has no effect: one rank sends no messages"
        self.assertIn(says, start([*words, "--backend", "shm"]).stderr)
        self.assertNotIn("has no effect", start(words).stderr)
        self.assertNotIn("has no effect", ranks(2, *words, "--backend", "shm").stderr)

    def test_a_run_that_stops_and_resumes_ends_in_the_same_bits(self):
        for mode in (["--dtype", "f32"], ["--dtype", "bf16"], ["--numerics", "exact"]):
            with self.subTest(mode=mode):
                common = [*mode, "--dropout", "0.1", "--train-iters", "10"]
                whole = train(f"{self.folder}/whole", *common, "--save-interval", "5")
                resumed = train(f"{self.folder}/resumed", *common, "--load", f"{whole}/checkpoints/step-5")
                self.assertEqual(weights(resumed, 10), weights(whole, 10))
                self.assertNotEqual(weights(whole, 5), weights(whole, 10))

    def test_a_checkpoint_saved_in_the_background_is_the_same_and_its_cost_is_recorded(self):
        words = ["--train-iters", "9", "--save-interval", "3"]
        plain, run = train(self.folder + "/plain", *words), train(self.folder + "/background", *words, "--async-save")
        for step in (6, 9):  # the run keeps two checkpoints
            self.assertEqual(weights(run, step), weights(plain, step))
        with h5py.File(f"{plain}/run.h5") as saved, h5py.File(f"{run}/run.h5") as hidden:
            for file, files in (saved, f"{plain}/checkpoints/step-9"), (hidden, f"{run}/checkpoints/step-9"):
                self.assertEqual(list(file["saves/step"]), [3, 6, 9])
                self.assertTrue((file["saves/exposed"][:] > 0).all())
                self.assertGreater(file["saves/bytes"][0], 3 * 4 * 943296)
                sizes = [os.path.getsize(f"{files}/{name}") for name in os.listdir(files)]
                self.assertEqual(file["saves/bytes"][2], sum(sizes))  # includes the manifest
            self.assertEqual(list(saved["saves/hidden"]), [0, 0, 0])
            self.assertTrue((hidden["saves/hidden"][:2] >= 0).all())
            self.assertEqual(hidden["saves/hidden"][2], 0)  # no step overlaps the last save

    def test_a_save_that_fails_ends_the_run_or_is_tried_again(self):
        words = ["prlimit", "--fsize=8000000", chorale, "train", *tiny, "--train-iters", "7", "--save-interval", "3",
                 "--run-dir", self.folder]
        for more in [], ["--async-save"]:
            for policy, fails_at in (("abort", [3]), ("continue", [3, 6, 7])):
                with self.subTest(more=more, policy=policy):
                    result = start([*words, *more, "--on-save-error", policy])
                    self.assertEqual(result.returncode, 1, result.stderr)
                    self.assertEqual(result.stderr.count("error: "), 1, result.stderr)
                    self.assertIn("File too large", result.stderr.split("error: ")[1])
                    for step in (3, 6):
                        warning = f"step {step} was not saved, and training goes on: "
                        self.assertEqual(warning in result.stderr, step in fails_at[:-1], result.stderr)
                    self.assertEqual(glob.glob(f"{self.folder}/latest/checkpoints/*"), [])
                    with h5py.File(f"{self.folder}/latest/run.h5") as file:
                        self.assertIn(len(file["train/step"]), range(fails_at[-1], 7 if policy == "abort" else 8))

    def test_a_run_that_diverges_gives_up_after_ten_steps_or_three_checkpoints(self):
        words = ["--dtype", "f16", "--lr", "100", "--lr-warmup-iters", "0", "--train-iters", "40", "--run-dir", self.folder]
        self.refused("train", *tiny, *words, says=["error: step ", "\n  element "], code=1)
        self.refused("train", *tiny, *words, "--on-nan", "skip", says=["  10 steps in a row were skipped\n"], code=1)
        with h5py.File(f"{self.folder}/latest/run.h5") as file:
            first = file["mishaps/step"][0]
            self.assertEqual(list(file["mishaps/step"]), list(range(first, first + 10)))
            self.assertEqual(list(file["train/skipped"][-10:]), 10 * [1])
            self.assertEqual(list(file["train/step"]), list(range(1, first + 10)))
        self.refused("train", *tiny, *words, "--on-nan", "roll-back", code=1,
                     says=["no checkpoint was saved before, so there is nothing to roll back to"])
        self.refused("train", *tiny, *words, "--on-nan", "roll-back", "--save-interval", "1", code=1,
                     says=["training goes back to step ", "training went back to step ", " 3 times\n"])
        with h5py.File(f"{self.folder}/latest/run.h5") as file:
            self.assertEqual(list(file["mishaps/action"]), [1, 1, 1])

    def test_memory_by_category_at_the_peak_adds_up_to_the_peak(self):
        run = train(self.folder + "/plain", "--train-iters", "3", "--micro-batch-size", "2")
        with h5py.File(f"{run}/run.h5") as file:
            memory = file["memory"]
            self.assertEqual(memory["at_peak"][-1].sum(axis=1).max(), file["train/peak_bytes"][-1])
            self.assertEqual(memory["planned_at_peak"][:].sum(axis=1).tolist(), memory["planned_total"][:].tolist())
            self.assertTrue((memory["at_peak"][:] <= memory["peak"][:]).all())
            self.assertGreater(memory["peak"][-1].sum(), memory["at_peak"][-1].sum())  # categories peak at different times

    def test_a_run_with_its_state_in_a_file_has_the_bits_of_one_without_and_moves_what_is_planned(self):
        z3 = ["--layout", "dp1.z3", "--train-iters", "3", "--micro-batch-size", "4"]
        places = ["--place", "parameters=file,gradients=file,optimizer=file", "--offload-folder", self.folder]
        plain = train(self.folder + "/plain", *z3)
        run = train(self.folder + "/offloaded", *z3, *places)
        self.assertEqual(weights(run, 3), weights(plain, 3))
        with h5py.File(f"{run}/run.h5") as file:
            memory = file["memory"]
            for moved in ("read", "written"):
                self.assertGreater(memory[f"tier_{moved}"][:].sum(), 0)
                self.assertEqual(memory[f"tier_{moved}"][:].tolist(), memory[f"tier_{moved}_predicted"][:].tolist())
            self.assertEqual(memory["bytes"][-1, 0, :3].tolist(), [0, 0, 0])  # params, grads and optimizer
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("chorale")], [])

    def test_a_run_with_its_activations_in_a_file_moves_what_is_planned(self):
        words = ["--recompute", "full", "--train-iters", "3", "--micro-batch-size", "2", "--eval-interval", "2"]
        plain = train(self.folder + "/plain", *words)
        run = train(self.folder + "/offloaded", *words, "--place", "activations=file", "--offload-folder", self.folder)
        self.assertEqual(weights(run, 3), weights(plain, 3))
        with h5py.File(f"{run}/run.h5") as file:
            memory = file["memory"]
            activations = 3  # the index of the category
            for moved in ("read", "written"):
                self.assertGreater(memory[f"tier_{moved}"][0, activations], 0)
                self.assertEqual(memory[f"tier_{moved}"][:].tolist(), memory[f"tier_{moved}_predicted"][:].tolist())

    def test_contiguous_memory_leaves_no_holes_and_changes_no_bit(self):
        words = ["--train-iters", "3", "--micro-batch-size", "2", "--recompute", "selective"]
        plain = train(self.folder + "/plain", *words)
        run = train(self.folder + "/contiguous", *words, "--contiguous-memory")
        self.assertEqual(weights(run, 3), weights(plain, 3))
        with h5py.File(f"{plain}/run.h5") as file:
            free, largest = file["memory/free"][:, 0], file["memory/largest_free"][:, 0]
            self.assertTrue((largest > 0).all() and (largest < free).all())
        with h5py.File(f"{run}/run.h5") as file:
            memory = file["memory"]
            self.assertGreaterEqual(memory["largest_free"][-1, 0], memory["contiguous"][0])
            self.assertGreaterEqual(memory["contiguous"][0], memory["contiguous_live"][0])
            self.assertGreater(memory["contiguous_served"][0], 0)
            self.assertEqual(memory["contiguous_unplanned"][0], 0)

    def test_what_cannot_be_offloaded_is_refused(self):
        place = ["train", *tiny, "--run-dir", self.folder, "--place"]
        self.refused(*place, "parameters=file", says=["parameters can be offloaded only", "try --zero 3"])
        self.refused(*place, "optimizer=file", "--offload-folder", "/nonexistent",
                     says=["cannot be used", "/nonexistent: No such file or directory"])
        self.refused(*place, "activations=file", says=["only the inputs of blocks", "--recompute full"])
        self.refused(*place, "optimizer=file", "--memory-limit", "4M", says=["too little memory", "the limit is 4.0 MiB"])
        self.refused(*place, "optimizer=file,optimizer=memory",
                     says=["two places for optimizer", "place = optimizer=file,optimizer=memory", "--place optimizer=file"])

    def test_a_limit_below_what_a_unit_needs_is_refused_before_mpi_starts(self):
        result = start([chorale, "train", *tiny, "--run-dir", self.folder, "--layout", "dp1.z3", "--memory-limit", "300K",
                        "--place", "parameters=file,gradients=file,optimizer=file", "--offload-folder", self.folder,
                        "--offload-window", "4K"], **without_mpi)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 3, result.stderr)
        self.assertRegex(result.stderr, r"error: a rank has too little memory for its .*\n  .*the limit is 300\.0 KiB\n  ")

    def with_mount(self, mount, **environment):
        """Trains with the optimizer states offloaded to the folder `there`. First runs a shell command that mounts a file
        system on this folder."""
        there = f"{self.folder}/there"
        os.makedirs(there, exist_ok=True)
        namespace = ["unshare", "--mount"] + ([] if os.getuid() == 0 else ["--map-root-user"])
        if subprocess.run([*namespace, "true"], capture_output=True).returncode != 0:
            self.skipTest("nothing can be mounted here")
        return start([*namespace, "bash", "-c", f'cd {there} && {mount} && exec "$@"', "mounted", os.path.abspath(chorale),
                      "train", *tiny, "--train-iters", "1", "--run-dir", f"{self.folder}/runs", "--place", "optimizer=file",
                      "--offload-folder", there], **environment)

    def test_a_folder_with_too_little_room_or_that_cannot_be_written_is_refused_before_mpi_starts(self):
        for mount, says in (("mount -t tmpfs -o size=4M none .",
                             ["the folder for offloaded tensors has too little room",
                              "/there: 4.0 MiB free, 7.2 MiB needed by a rank of this host", "another --offload-folder"]),
                            ("mount --bind . . && mount -o remount,bind,ro .",
                             ["the folder for offloaded tensors cannot be used", "/there: Read-only file system",
                              "--offload-folder"])):
            with self.subTest(mount=mount):
                result = self.with_mount(mount, **without_mpi)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 3, result.stderr)
                for part in says:
                    self.assertIn(part, result.stderr)
        self.assertEqual(os.listdir(f"{self.folder}/there"), [])

    @unittest.skipUnless(os.getuid() == 0, "only root can become somebody else")
    def test_a_folder_that_belongs_to_somebody_else_is_refused(self):
        os.chmod(self.folder, 0o755)
        os.makedirs(f"{self.folder}/there")
        os.makedirs(f"{self.folder}/runs")
        os.chmod(f"{self.folder}/runs", 0o777)
        result = start(["setpriv", "--reuid", "65534", "--clear-groups", os.path.abspath(chorale), "train", *tiny,
                        "--run-dir", f"{self.folder}/runs", "--place", "optimizer=file",
                        "--offload-folder", f"{self.folder}/there"], **without_mpi)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("the folder for offloaded tensors cannot be used", result.stderr)
        self.assertIn("/there: Permission denied", result.stderr)

    # The file system ramfs refuses O_DIRECT, and cannot reserve space.
    def test_a_folder_in_memory_is_warned_of_and_a_file_system_without_direct_access_is_used_through_its_cache(self):
        for mount in ("mount -t tmpfs -o size=64M none .", "mount -t ramfs none ."):
            with self.subTest(mount=mount):
                result = self.with_mount(mount)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("/there is on tmpfs, which is memory too: nothing is gained", result.stderr)
                self.assertRegex(result.stdout,
                                 r"offload to a file in .*there, by .*: read .*, wrote .* on rank 0, as planned\n.*with "
                                 r"initial values and checkpoints, the file read .* and wrote ")
                self.assertIn(", buffered: read" if "ramfs" in mount else "buffered: read", result.stdout)

    # The file system ext4 without extents supports O_DIRECT, but cannot reserve space.
    def test_a_file_system_that_cannot_reserve_space_holds_offloaded_tensors(self):
        result = self.with_mount("truncate -s 64M ../image && mkfs.ext4 -q -F -O ^extent,^64bit ../image && "
                                 "mount -o loop ../image .")
        if "mkfs.ext4: " in result.stderr or "mount: " in result.stderr:
            self.skipTest("no loop devices here, or no mkfs.ext4")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("on rank 0, as planned", result.stdout)

    def test_a_run_told_to_stop_saves_and_can_go_on(self):
        process = spawn([chorale, "train", *tiny, "--train-iters", "100000", "--run-dir", self.folder, "--log-interval",
                         "1"],
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for line in process.stdout:
            if re.search(r"step 3/", line):
                break
        process.send_signal(signal.SIGTERM)
        rest = "".join(finish(process))
        self.assertEqual(process.returncode, 0, rest)
        saved = int(re.search(r"saved .*step-(\d+)", rest).group(1))
        self.assertGreaterEqual(saved, 3)
        again = train(self.folder, "--load", f"{self.folder}/latest", "--train-iters", str(saved + 2))
        with h5py.File(f"{again}/run.h5") as file:
            self.assertEqual(list(file["train/step"]), [saved + 1, saved + 2])

    def test_a_run_goes_on_with_the_batch_of_its_checkpoint_unless_told_otherwise(self):
        train(self.folder, "--global-batch-size", "6", "--train-iters", "1")
        for steps, words, batch in ((2, [], 6), (3, ["--global-batch-size", "4"], 4)):
            result = start([chorale, "train", "--load", f"{self.folder}/latest", "--train-iters", str(steps),
                            "--threads", "1", "--eval-samples", "4", *words, "--run-dir", self.folder])
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f", {batch} sequences of ", result.stdout)

    def test_a_finished_run_is_not_resumed_and_stays_the_newest(self):
        run = train(self.folder, "--train-iters", "3")
        for steps in ("3", "2"):
            self.refused("train", "--config", f"{run}/config.toml", "--load", f"{self.folder}/latest", "--train-iters",
                         steps, says=["no step is left to train", f"step-3 is at step 3, but --train-iters is {steps}"])
        self.assertEqual(os.path.realpath(f"{self.folder}/latest"), run)
        self.assertEqual(sorted(os.listdir(self.folder)), sorted([os.path.basename(run), "latest"]))

    def test_a_run_without_checkpoint_names_the_newest_that_has_one(self):
        empty = train(self.folder, "--train-iters", "1", "--no-save")
        self.refused("generate", "--load", f"{self.folder}/latest",
                     says=["no run beside it has one: check the path given to --load"])
        os.rename(train(self.folder, "--train-iters", "1"), f"{self.folder}/2001-older")
        saved = train(self.folder, "--train-iters", "1")
        os.remove(f"{self.folder}/latest")
        os.symlink(os.path.basename(empty), f"{self.folder}/latest")
        for words in (["generate"], ["export", "--out", f"{self.folder}/hf"], ["train", "--preset", "tiny"]):
            for slash in ("", "/"):
                self.refused(*words, "--load", f"{self.folder}/latest{slash}",
                             says=["there is no checkpoint",
                                   f"latest is now {os.path.basename(empty)}, a run of chorale train, which has neither",
                                   f"load the newest run that has one: --load {saved}"])
        self.assertEqual(start([chorale, "info", "--run-dir", self.folder]).returncode, 0)  # info moves the link `latest`
        self.refused("generate", "--load", f"{self.folder}/latest",
                     says=["-info-", ", a run of chorale info, which has neither", f"--load {saved}"])
        suite = f"{self.folder}/9999-suite"  # as if from a newer suite
        os.makedirs(f"{suite}/dp1-r1")
        open(f"{suite}/suite.toml", "w").close()
        os.rename(f"{saved}/checkpoints", f"{suite}/dp1-r1/checkpoints")
        self.refused("generate", "--load", f"{self.folder}/latest", says=[f"--load {suite}/dp1-r1"])

    def test_a_text_of_ones_own_is_learned_and_continued(self):
        text = os.path.join(self.folder, "book.txt")
        with open(text, "w") as file:
            file.write("the cat sat on the mat and the dog sat on the log. " * 400)
        tokens = os.path.join(self.folder, "book.bin")
        self.assertEqual(start([chorale, "data", "tokenize", text, "--out", tokens]).returncode, 0)
        run = train(self.folder, "--data", tokens, "--num-layers", "2", "--train-iters", "150", "--lr", "1e-2",
                    "--vocab-size", "256")
        words = ["generate", "--load", run, "--tokenizer", "bytes", "--prompt", "the cat ", "--tokens", "60"]
        result = start([chorale, *words, "--temperature", "0"])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("sat on the", result.stdout)
        sampled = [start([chorale, *words, "--seed", seed, "--temperature", "1.5"]).stdout for seed in "112"]
        self.assertEqual(sampled[0], sampled[1])
        self.assertNotEqual(sampled[0], sampled[2])

    def test_an_exported_model_is_the_model(self):
        run = train(self.folder, "--train-iters", "3")
        hf = f"{self.folder}/hf"
        self.assertEqual(start([chorale, "export", "--load", run, "--out", hf]).returncode, 0)
        ours, theirs = (start([chorale, "generate", "--load", f, "--prompt", "5,7", "--tokens", "15"]).stdout
                        for f in (run, hf))
        self.assertEqual(ours, theirs)
        self.assertEqual(len(ours.split()), 17)
        more = start([chorale, "train", "--load-hf", hf, "--train-iters", "2", "--run-dir", f"{self.folder}/more",
                      "--global-batch-size", "2"])
        self.assertEqual(more.returncode, 0, more.stderr)

    def test_what_a_run_leaves_has_the_modes_of_the_umask(self):
        for mask in (0o022, 0o007):
            with self.subTest(mask=oct(mask)), tempfile.TemporaryDirectory() as folder:
                before = os.umask(mask)
                try:
                    run = train(f"{folder}/runs", "--train-iters", "1")
                    for words in (["export", "--load", run, "--out", f"{folder}/hf"], ["report", f"{run}/run.h5", "--html"]):
                        self.assertEqual(start([chorale, *words]).returncode, 0)
                finally:
                    os.umask(before)
                seen = 0
                for place, folders, files in os.walk(f"{folder}"):
                    for name in [*folders, *files]:
                        path = os.path.join(place, name)
                        if os.path.islink(path):
                            continue
                        full = 0o777 if os.path.isdir(path) else 0o666
                        self.assertEqual(oct(os.stat(path).st_mode & 0o777), oct(full & ~mask), path)
                        seen += 1
                self.assertGreater(seen, 12)

    def test_a_model_is_not_exported_over_what_is_there(self):
        run = train(self.folder, "--train-iters", "1")
        there = f"{self.folder}/model"
        os.mkdir(there)
        self.assertEqual(start([chorale, "export", "--load", run, "--out", there]).returncode, 0)  # the folder is empty
        files = sorted(os.listdir(there))
        self.refused("export", "--load", run, "--out", there, says=["already exists", there, "name another with --out"])
        self.assertEqual(sorted(os.listdir(there)), files)

    def test_what_cannot_be_trained_is_refused(self):
        self.refused("train", "--hidden-size", "100", "--num-attention-heads", "7",
                     says=["heads do not divide the width", "100", "7", "try --num-attention-heads 4"])
        self.refused("train", "--family", "llama", "--hidden-size", "35", "--num-attention-heads", "4",
                     says=["heads do not divide the width", "choose a multiple of 8, such as --hidden-size 40"])
        self.refused("train", "--global-batch-size", "8", "--micro-batch-size", "3", "--run-dir", self.folder,
                     says=["the batch does not divide evenly", "8", "3"])
        self.refused("train", "--preset", "nan", says=["unknown preset", "nano"])
        self.refused("train", "--numerics", "exact", "--dtype", "bf16", "--run-dir", self.folder,
                     says=["exact numerics compute in f32"])
        for name, content in (("empty.bin", b""), ("cut.bin", b"\x00" * 100)):
            path = f"{self.folder}/{name}"
            with open(path, "wb") as file:
                file.write(content)
            self.refused("train", "--data", path, "--run-dir", self.folder, says=[name])
        text, tokens = f"{self.folder}/x.txt", f"{self.folder}/x.bin"
        with open(text, "w") as file:
            file.write("abc ~" * 100)
        start([chorale, "data", "tokenize", text, "--out", tokens])
        self.refused("train", "--data", tokens, "--vocab-size", "100", "--run-dir", self.folder, says=["126", "100"])
        self.refused("train", "--load", self.folder, "--load-hf", self.folder, says=["load and load-hf exclude each other"])
        self.refused("generate", says=["no model to generate with"])

    def test_a_damaged_or_foreign_checkpoint_is_refused(self):
        run = train(self.folder, "--train-iters", "2")
        self.refused("train", "--preset", "tiny", "--num-layers", "4", "--load", run, "--run-dir", self.folder,
                     says=["layers"])
        path = f"{run}/checkpoints/step-2/rank-0.safetensors"
        with open(path, "r+b") as file:
            file.seek(100000)
            byte = file.read(1)
            file.seek(100000)
            file.write(bytes([byte[0] ^ 4]))
        result = start([chorale, "generate", "--load", run])
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("rank-0.safetensors", result.stderr)
        # Without a manifest, the shape of the stored model is unknown. Then the layout must not be checked against the shape
        # of another model.
        with open(f"{run}/checkpoints/step-2/manifest.json", "r+b") as file:
            file.truncate(50)
        for command in ("train", "generate"):
            result = ranks(2, chorale, command, "--load", run, "--layout", "dp2.ep2")
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertEqual(result.stderr.count("error: the checkpoint is damaged\n"), 1, result.stderr)
            self.assertIn("manifest.json: ", result.stderr)

    def test_a_layout_without_mpirun_names_the_command_that_starts_its_ranks(self):
        result = start([chorale, "train", *tiny, "--layout", "dp4", "--run-dir", self.folder])
        self.assertEqual(result.returncode, 2)
        self.assertIn(f"start it as: mpirun -n 4 {chorale} train --layout dp4 …", result.stderr)

    def test_two_stages_go_on_where_two_replicas_stopped(self):
        exact = [chorale, "train", *tiny, "--numerics", "exact", "--run-dir", self.folder]
        first = ranks(2, *exact, "--train-iters", "2", "--layout", "dp2.z2")
        self.assertEqual(first.returncode, 0, first.stderr)
        second = ranks(2, *exact, "--train-iters", "3", "--layout", "pp2", "--load", os.path.join(self.folder, "latest"))
        self.assertEqual(second.returncode, 0, second.stderr)
        self.assertIn("stage 1", second.stdout)  # a line of the measured pipeline

    def test_the_work_of_attention_on_context_ranks_is_predicted_and_measured(self):
        for cut, most in sample((("contiguous", 1.5), ("zigzag", 1), ("balanced", 1)), 2):
            result = ranks(2, chorale, "train", *tiny, "--train-iters", "2", "--seq-length", "256", "--layout", "dp1.cp2",
                           "--global-batch-size", "2", "--context-cut", cut, "--no-save", "--run-dir", self.folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"attention, {cut} by gather: the busiest of 2 context ranks has {most:.3f} times the mean work",
                          result.stdout)
            with h5py.File(f"{self.folder}/latest/run.h5") as file:
                pairs, seconds = file["ranks/attention_pairs"][:], file["ranks/attention_seconds"][:]
            self.assertAlmostEqual(max(pairs) / (sum(pairs) / 2), most)
            self.assertTrue((seconds > 0).all())

    def test_a_balanced_cut_makes_the_work_of_packed_documents_even(self):
        words = [chorale, "train", *tiny, "--train-iters", "2", "--seq-length", "256", "--layout", "dp1.cp2",
                 "--global-batch-size", "2", "--document-mask", "random:100", "--no-save", "--run-dir", self.folder]
        works = []
        for cut in ("zigzag", "balanced"):
            result = ranks(2, *words, "--context-cut", cut)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("bytes sent: as planned, ", result.stdout)
            with h5py.File(f"{self.folder}/latest/run.h5") as file:
                pairs = file["ranks/attention_pairs"][:]
            works.append(max(pairs) / (sum(pairs) / 2))
        self.assertGreater(works[0], 1.01)
        self.assertLess(works[1], 1.005)

    def test_a_balanced_cut_is_refused_with_ulysses_ring_before_ranks_start(self):
        result = start([chorale, "train", *tiny, "--layout", "dp1.cp2", "--context-cut", "balanced", "--context-scheme",
                        "ulysses-ring", "--run-dir", self.folder], OMPI_COMM_WORLD_SIZE="2")
        self.assertEqual(result.returncode, 2)
        self.assertIn("the groups of ulysses-ring need the same tokens of every sample", result.stderr)
        self.assertIn("try --context-cut zigzag, or --context-scheme ring", result.stderr)

    def test_three_tokens_are_enough_for_two_contiguous_context_ranks_but_not_for_zigzag(self):
        words = [chorale, "train", *tiny, "--train-iters", "1", "--seq-length", "3", "--layout", "dp1.cp2", "--no-save",
                 "--run-dir", self.folder]
        result = ranks(2, *words, "--context-cut", "contiguous")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("attention, contiguous by gather", ranks(2, *words).stdout)  # the default is a split that works here
        result = ranks(2, *words, "--context-cut", "zigzag")
        self.assertEqual(result.returncode, 2)
        self.assertIn("seq-length 3 is 3 blocks of 1; context 2 needs 4 with --context-cut zigzag", result.stderr)

    def test_what_was_sent_is_recorded_and_as_planned(self):
        result = ranks(4, chorale, "train", *tiny, "--train-iters", "5", "--eval-interval", "2", "--micro-batch-size", "2",
                       "--layout", "dp2.tp2.z1.sp", "--run-dir", self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("bytes sent: as planned, ", result.stdout)
        run = f"{self.folder}/latest/run.h5"
        with xarray.open_dataset(run, group="traffic") as traffic:
            self.assertEqual(traffic.bytes_measured.dims, ("rank", "axis", "op"))
            self.assertEqual(traffic.axis.attrs["flag_meanings"], "dp rep tp pp cp ends world")
            self.assertTrue((traffic.bytes_measured == traffic.bytes_predicted).all())
            in_evaluations = traffic.bytes_evaluations.sum(["rank", "op"]).values  # one value per axis, in the order above
            self.assertEqual([bytes > 0 for bytes in in_evaluations], [False, False, True, False, False, False, True])
            calls = dict(zip(traffic.op.attrs["flag_meanings"].split(), traffic.calls.values[3, 0]))
            self.assertEqual({op: n for op, n in calls.items() if n}, {"reduce_scatter": 5, "all_gather": 5})  # one bucket
        with h5py.File(run) as file:
            self.assertEqual([list(file[f"ranks/{axis}"]) for axis in ("dp", "tp", "pp")],
                             [[0, 0, 1, 1], [0, 1, 0, 1], [0] * 4])
            self.assertTrue((file["memory/planned"][:] == file["memory/peak"][0]).all())

    def test_steps_that_are_skipped_and_runs_that_go_on_are_planned_as_they_were(self):
        common = ["train", *tiny, "--dtype", "f16", "--initial-loss-scale", "1e9", "--hysteresis", "1", "--layout", "dp2.z1",
                  "--run-dir", self.folder]
        for words in ([], ["--load", f"{self.folder}/latest"]):
            result = ranks(2, chorale, *common, "--train-iters", "22" if words else "20", *words)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("bytes sent: as planned, ", result.stdout)
        skipped = [int(h5py.File(f"{self.folder}/{run}/run.h5")["train/skipped"][:].sum())
                   for run in sorted(os.listdir(self.folder))[:-1]]
        self.assertTrue(0 < skipped[0] < 20 and skipped[1] == 0, skipped)

    def stopped(self, line_before, *words):
        """Trains on two ranks. After a line of output that contains `words`, stops rank 1 by a signal. Returns the output
        after this line."""
        process = spawn([*launch, "-n", "2", chorale, "train", *tiny, *words, "--run-dir", self.folder,
                         "--log-interval", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for line in process.stdout:
            if line_before in line:
                break
        with h5py.File(f"{self.folder}/latest/run.h5") as file:
            os.kill(int(file["ranks/pid"][1]), signal.SIGTERM)
        rest = "".join(finish(process))
        self.assertEqual(process.returncode, 0, rest)
        return rest

    def test_a_run_of_ranks_that_is_told_to_stop_has_sent_what_it_should(self):
        rest = self.stopped("step 3/", "--train-iters", "100000", "--layout", "pp2")
        self.assertIn("stopped by a signal", rest)
        self.assertIn("bytes sent: as planned, ", rest)

    def test_a_signal_cuts_an_evaluation_short(self):
        for layout in ("tp2", "pp2"):
            rest = self.stopped("step 1/1 ", "--train-iters", "1", "--eval-samples", "20000", "--layout", layout,
                                "--no-save")
            self.assertIn("stopped by a signal after step 1, during its evaluation", rest)
            self.assertNotIn("held-out loss", rest)
            self.assertIn("bytes sent: not compared with the plan, because an evaluation was cut short", rest)
            with h5py.File(f"{self.folder}/latest/run.h5") as file:
                self.assertEqual(file.attrs["status"].decode(), "stopped")

    def test_published_activations_are_those_of_the_same_rank_and_layers(self):
        mebibytes = {}
        for layout, where in (("dp1", "8 of 8 layers"), ("dp1.pp2", "4 of 8 layers"),
                              ("tp2", "8 of 8 layers, on one of 2 tensor ranks"),
                              ("tp2.sp", "8 of 8 layers, on one of 2 tensor ranks")):
            result = ranks(1 if layout == "dp1" else 2, chorale, "train", *tiny, "--micro-batch-size", "8", "--train-iters",
                           "1", "--layout", layout, "--no-save", "--run-dir", self.folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            line = rf"activations of a micro-batch in {where}: .* \(published formula, .*: (\d\.\d) MiB\)"
            mebibytes[layout] = float(re.search(line, result.stdout).group(1))
        whole = mebibytes["dp1"]
        self.assertAlmostEqual(mebibytes["dp1.pp2"], whole / 2, delta=0.1)
        self.assertAlmostEqual(mebibytes["tp2.sp"], whole / 2, delta=0.1)
        self.assertTrue(whole / 2 < mebibytes["tp2"] < whole, mebibytes)

    def test_every_layout_generates_the_text_of_one_rank(self):
        exact = ["--numerics", "exact", "--threads", "1"]
        run = train(self.folder, *exact, "--train-iters", "3")
        words = [chorale, "generate", "--load", run, *exact, "--prompt", "5,7", "--tokens", "40"]
        alone = start([*words, "--samples", "5"]).stdout
        self.assertEqual(len(set(alone.splitlines())), 5)
        for layout in sample(("dp1.tp2.pp2", "dp2.tp2.z3", "dp4", "dp2.pp2.z3", "dp2.pp2.v2"), 3):
            with self.subTest(layout=layout):
                result = ranks(4, *words, "--samples", "5", "--layout", layout)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(result.stdout, alone)
        hf = f"{self.folder}/hf"
        self.assertEqual(start([chorale, "export", "--load", run, "--out", hf]).returncode, 0)
        words[3] = hf
        self.assertEqual(ranks(2, *words, "--samples", "5", "--layout", "tp2").stdout, alone)

    def test_ranks_that_divide_experts_generate_the_text_of_one_rank(self):
        exact = ["--numerics", "exact", "--threads", "1"]
        run = train(self.folder, *exact, "--train-iters", "2", "--num-experts", "4", "--moe-router-topk", "2")
        words = [chorale, "generate", "--load", run, *exact, "--prompt", "5,7", "--tokens", "20", "--samples", "5"]
        alone = start(words).stdout
        # The last round of generation has fewer texts than there are replicas.
        for layout in sample(("dp4.ep4", "dp4.ep2", "dp2.tp2.ep2", "dp2.pp2.ep2"), 3):
            with self.subTest(layout=layout):
                result = ranks(4, *words, "--layout", layout)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(result.stdout, alone)

    def test_what_no_layout_generates_is_refused_once(self):
        run = train(self.folder, "--train-iters", "1")
        for words, says in ((["--samples", "2"], "ask for --samples 4"),
                            (["--layout", "tp2.sp"], "generate on dp2.tp2: it loads"),
                            (["--layout", "pp4.v4"], "more stages than layers"),
                            (["--load", "nowhere"], "there is no checkpoint")):
            result = ranks(4, chorale, "generate", "--load", run, *words)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertEqual(result.stderr.count("error: "), 1, result.stderr)
            self.assertIn(says, result.stderr)
        result = ranks(3, chorale, "export", "--load", run, "--out", f"{self.folder}/hf")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("export runs as one process", result.stderr)
        self.assertFalse(os.path.exists(f"{self.folder}/hf"))

    # The weights, gradients and moments of 0.94 million parameters in f32 need 15.1 MB per replica. With ZeRO-3 or tp2.pp2,
    # a rank needs a quarter of this memory.
    def test_a_model_too_large_for_replicas_trains_where_ranks_share_its_states(self):
        words = [chorale, "train", *tiny, "--train-iters", "2", "--run-dir", self.folder, "--memory-limit", "8M", "--layout"]
        result = ranks(4, *words, "dp4")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stderr.count("error: "), 1, result.stderr)
        self.assertIn("error: a rank has too little memory for its optimizer\n", result.stderr)
        self.assertRegex(result.stderr, r"dp4, a rank of stage 0: peak 16\.8 MiB .*params 3\.6 MiB, grads 3\.6 MiB, "
                                        r"optimizer 7\.2 MiB")
        self.assertRegex(result.stderr, r"the limit is 8\.0 MiB\n  try --zero 3 with --place \S+, or try dp4\.z3, ")
        for layout in ("dp4.z3", "tp2.pp2"):
            result = ranks(4, *words, layout)
            self.assertEqual(result.returncode, 0, result.stderr)
            with h5py.File(f"{self.folder}/latest/run.h5") as file:
                self.assertEqual(list(file["train/step"]), [1, 2])
                states = file["memory/bytes"][-1, :, :3].sum(axis=1)
                self.assertTrue((states > 3.7e6).all() and (states < 4.1e6).all(), states)

    # The weights, gradients and moments need 14.4 MiB. The memory limits leave little for activations, but enough with
    # recomputation or smaller micro-batches.
    def test_flags_with_which_the_layout_fits_are_named_first_and_fit(self):
        words = ["train", *tiny, "--train-iters", "1", "--run-dir", self.folder, "--memory-limit"]
        found = {}
        for limit in ("15M", "17M", "18M", "19M", "20M"):
            result = start([chorale, *words, limit])
            if result.returncode == 0:
                continue
            found[limit] = re.search(r"\n  try (--[^,]*), or start 2 ranks with as much memory each and try ", result.stderr)
            for flags in (found[limit].group(1).split(" or ") if found[limit] else ()):
                fitting = start([chorale, *words, limit, *flags.replace(" with", "").split()])
                self.assertEqual(fitting.returncode, 0, f"{limit} {flags}: {fitting.stderr}")
        self.assertTrue(any(found.values()), found)
        self.refused(*words, "1M", "--layout", "dp1", says=["a rank has too little memory for its params", "start "])

    # The weights, gradients and moments need 120 GiB or more. If a rank began to allocate this memory, the kernel would kill
    # the rank, and the rank could print no message.
    def test_a_model_too_large_for_the_machine_is_refused_before_anything_is_allocated(self):
        with open(f"{self.folder}/config.json", "w") as file:  # a model folder without weights
            json.dump({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 24, "n_head": 64,
                       "n_embd": 8192, "n_positions": 2048, "vocab_size": 50257}, file)
        big = ["--preset", "gpt3-175b" if thorough else "llama-8b", "--run-dir", self.folder]
        for words, says in ((["train", *big, "--no-save", "--train-iters", "1"],
                             r"start \d+ ranks with as much memory each and try dp.*tp"),
                            (["prove", *big, "--steps", "1"], "compared with one rank alone"),
                            (["generate", "--load", self.folder], r"start \d+ ranks with as much memory each and try dp")):
            for processes in (1, 2):
                with self.subTest(words=words, processes=processes):
                    result = ranks(processes, "bash", "-c", 'ulimit -v 16777216; exec "$@"', "limited", chorale, *words)
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertEqual(result.stderr.count("error: "), 1, result.stderr)
                    self.assertNotIn("MPI_ABORT", result.stderr)
                    self.assertRegex(result.stderr,
                                     r"host.s available memory \(--memory-limit auto\) is [0-9.]+ [MG]iB\n  .*" + says)
        self.assertEqual(os.listdir(self.folder), ["config.json"])

    def test_a_limit_of_0_is_none(self):
        result = start([chorale, "train", *tiny, "--train-iters", "1", "--run-dir", self.folder, "--memory-limit", "0"])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("0: no limit", start([chorale, "train", "--help"]).stdout)

    def test_a_limit_above_the_memory_of_the_machine_is_warned_of(self):
        for limit, warns in (("500T", True), ("100M", False)):
            result = start([chorale, "train", *tiny, "--train-iters", "1", "--run-dir", self.folder, "--no-save",
                            "--memory-limit", limit])
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual("--memory-limit is 500.0 TiB, but " in result.stderr, warns, result.stderr)

    def test_a_layout_that_does_not_fit_is_refused(self):
        result = ranks(2, chorale, "train", *tiny, "--train-iters", "2", "--run-dir", self.folder, "--layout", "tp5")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("try dp1.tp2, dp2 or dp1.cp2", result.stderr)

    def test_what_would_be_ignored_is_refused_once(self):
        for words, says in (("dp2.z1 --reducer naive", "ZeRO stage is 1"),
                            ("dp2 --partition-activations --recompute full", "one tensor rank"),
                            ("tp2 --partition-activations", "recompute = none"),
                            ("dp2.gpipe", "only a pipeline has a schedule"),
                            ("dp2 --schedule zb-h1", "the layout has no pipeline"),
                            ("dp2.z3 --bucket-size 1M", "ZeRO stage is 3"),
                            ("dp2 --reducer naive --memory-limit 5M", "too little memory"),  # ZeRO must not be advised
                            ("dp2 --dtype bf16 --numerics exact", "exact numerics compute in f32")):
            with self.subTest(words=words):
                result = ranks(2, chorale, "train", *tiny, "--train-iters", "1", "--run-dir", self.folder, "--layout",
                               *words.split())
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stderr.count("error: "), 1, result.stderr)
                self.assertIn(says, result.stderr)
                self.assertNotIn("MPI_ABORT", result.stderr)


if __name__ == "__main__":
    unittest.main()
