"""Tests `chorale launch`: a training run that loses ranks must go on, on other layouts, and end on the same weights.

   KILLS=50 STEPS=200 /usr/bin/python3 tests/outside.py launch_test

KILLS is the number of launches whose ranks are killed at random moments, one to three times each. SEED chooses the moments.
"""
import functools
import glob
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import tempfile
import time
import unittest

import alive
from long_job import ranks_of
from programs import chorale, finish, launch, mount_namespace, ranks, spawn, start, until
from tally import Tally

kills = int(os.environ.get("KILLS", "2"))
seed = int(os.environ.get("SEED", "1"))
steps = int(os.environ.get("STEPS", "40"))
model = ["--preset", "tiny", "--numerics", "exact", "--dropout", "0.1", "--global-batch-size", "24",
         "--micro-batch-size", "4", "--train-iters", str(steps), "--eval-samples", "6", "--replica-interval", "0",
         "--threads", "1"]


def lines_of(folder, table):
    """Returns the rows of a table in the metrics.jsonl of a run or a launch."""
    try:
        with open(f"{folder}/metrics.jsonl", encoding="utf-8") as metrics:
            rows = [json.loads(line) for line in metrics if line.endswith("\n")]
    except OSError:
        return []
    return [row for row in rows if row["table"] == table]


def trial(test):
    """Counts the test as one trial of `make chaos`."""
    @functools.wraps(test)
    def counted(self):
        with Tally(self).trial():
            test(self)
    return counted


class LaunchCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.shared.cleanup)

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def launch(self, *options, layout="dp2.tp2.z1", slots=4, interval=1, program=model, before=(), **environment):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("CHORALE_")}
        self.output = open(f"{self.folder.name}/output", "w+")
        self.addCleanup(self.output.close)
        number = [] if slots is None else ["--ranks", str(slots)]
        job = spawn([*before, chorale, "launch", *number, "--run-dir", self.folder.name, *options, "--", "train", *program,
                     *(["--layout", layout] if layout else []), "--save-interval", str(interval)],
                    stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output, env={**kept, **environment})
        self.addCleanup(alive.end, job.pid)
        return job

    def said(self):
        self.output.flush()
        with open(self.output.name, encoding="utf-8", errors="replace") as output:
            return output.read()

    def run_folder(self):
        found = glob.glob(f"{self.folder.name}/*-launch-*")
        return found[0] if found else self.folder.name

    def step(self):
        rows = lines_of(self.run_folder(), "train")
        return rows[-1]["step"] if rows else 0

    def events(self):
        return lines_of(self.run_folder(), "events")

    def until_step(self, wanted, job):
        until(lambda: self.step() >= wanted or job.poll() is not None, job)

    def kill_a_rank(self, job, rank=None, number=signal.SIGKILL, chance=random):
        """Sends a signal to a rank of the current start. Returns the rank, or None if no rank runs."""
        running = ranks_of(job)
        if rank is None and running:
            rank = chance.choice(sorted(running))
        if rank not in running:
            return None
        try:
            os.kill(running[rank], number)
        except ProcessLookupError:
            return None
        return rank

    @staticmethod
    def weights(folder):
        """Returns the SHA-256 of a run's weights."""
        with tempfile.TemporaryDirectory() as out:
            exported = start([chorale, "export", "--load", folder, "--out", f"{out}/model"])
            if exported.returncode != 0:
                raise AssertionError(exported.stderr)
            with open(f"{out}/model/model.safetensors", "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()

    undisturbed_hash = None

    def undisturbed(self):
        """Returns the SHA-256 of the weights of a run on one rank without a launch."""
        if not LaunchCase.undisturbed_hash:
            run = start([chorale, "train", *model, "--run-dir", self.shared.name])
            self.assertEqual(run.returncode, 0, run.stderr)
            LaunchCase.undisturbed_hash = self.weights(f"{self.shared.name}/latest")
        return LaunchCase.undisturbed_hash

    def require_complete(self, job, interval=1):
        finish(job)
        self.assertEqual(job.returncode, 0, self.said()[-6000:])
        folder = self.run_folder()
        self.assertEqual(sorted({row["step"] for row in lines_of(folder, "train")}), list(range(1, steps + 1)))
        with open(f"{folder}/checkpoints/step-{steps}/manifest.json", encoding="utf-8") as manifest:
            self.assertEqual(json.load(manifest)["manifest"]["metadata"]["cursor"], 24 * steps)  # each sample was read once
        for event in self.events():
            self.assertLessEqual(event["lost_steps"], interval, event)
        self.assertEqual(self.events()[-1]["kind"], "complete")
        self.assertEqual(self.weights(folder), self.undisturbed(), self.said()[-6000:])


class Kills(LaunchCase):
    def test_ranks_killed_at_random_moments_change_no_bit(self):
        chance, tally, seconds = random.Random(seed), Tally(self), []
        self.undisturbed()
        for number in range(kills):
            with tally.trial(trial=number):
                self.setUp()
                job = self.launch("--quarantine", "2s", "--min-ranks", "2")
                for moment in sorted(chance.uniform(0, steps - 1) for _ in range(chance.randint(1, 3))):
                    self.until_step(int(moment), job)
                    time.sleep(chance.uniform(0, 0.2))
                    self.kill_a_rank(job, chance=chance)
                self.require_complete(job)
                for event in self.events():
                    times = [event["end_s"], event["choose_s"], event["first_step_s"]]
                    if event["kind"] == "died" and None not in times:
                        seconds.append(sum(times))
        seconds.sort()  # for the findings; no limit, because machines differ
        if seconds:
            print(f"from a death to the next step: {len(seconds)} deaths, median {seconds[len(seconds) // 2]:.2f} s, "
                  f"p95 {seconds[int(0.95 * (len(seconds) - 1))]:.2f} s, most {seconds[-1]:.2f} s", flush=True)


class Deaths(LaunchCase):
    def keeper_of(self, job):
        """Returns the PID of the keeper of a launch."""
        for pid, process in alive.processes().items():
            if process.parent == job.pid:
                with open(f"/proc/{pid}/comm", encoding="utf-8") as name:
                    if name.read().strip() == "chorale-keeper":
                        return pid
        return None

    def heads_of_snapshots(self, job, rank):
        """Returns the files with the heads of a rank's two generations, as the keeper of a launch holds them."""
        folder = f"/proc/{self.keeper_of(job)}/fd"
        return [f"{folder}/{number}" for number in os.listdir(folder)
                if re.search(rf"chorale-{rank}-\d-info ", os.readlink(f"{folder}/{number}"))]

    @staticmethod
    def kept_step(head):
        with open(head, "rb") as info:
            return int.from_bytes(info.read(16)[8:], "little", signed=True)

    def die_while_the_supervisor_is_stopped(self, job, then):
        """Kills a rank in such a way that `then` can change what the next start finds."""
        os.kill(job.pid, signal.SIGSTOP)
        self.kill_a_rank(job, 1)
        until(lambda: not ranks_of(job), job)
        then()
        os.kill(job.pid, signal.SIGCONT)

    @trial
    def test_two_ranks_that_die_at_once_are_one_event(self):
        job = self.launch("--quarantine", "60s")
        self.until_step(5, job)
        running = ranks_of(job)
        for rank in (1, 3):
            os.kill(running[rank], signal.SIGKILL)
        self.require_complete(job)
        died = [event for event in self.events() if event["kind"] == "died"]
        self.assertEqual(len(died), 1, self.events())
        self.assertIn(died[0]["rank"], (1, 3))
        self.assertRegex(died[0]["why"], r"^rank [13] on \S+ was killed by SIGKILL in ")

    @trial
    def test_a_stopped_rank_is_a_hang_and_the_run_goes_on(self):
        job = self.launch("--quarantine", "60s", CHORALE_TIMEOUT="3")
        self.until_step(5, job)
        self.kill_a_rank(job, 2, signal.SIGSTOP)
        self.require_complete(job)
        hung = [event for event in self.events() if event["kind"] == "hung"]
        self.assertEqual([event["rank"] for event in hung], [2], self.events())
        self.assertGreaterEqual(hung[0]["detect_s"], 2)

    @trial
    def test_a_snapshot_in_memory_is_newer_than_the_checkpoints(self):
        job = self.launch("--quarantine", "60s", interval=1000)
        self.until_step(6, job)
        self.kill_a_rank(job, 3)
        self.require_complete(job)
        died = [event for event in self.events() if event["kind"] == "died"]
        self.assertEqual([event["source"] for event in died], ["memory"], self.events())

    @trial
    def test_a_damaged_snapshot_is_skipped_for_the_older_one(self):
        job = self.launch("--quarantine", "60s", interval=1000)
        self.until_step(6, job)
        keeper = self.keeper_of(job)

        def damage():
            numbers = os.listdir(f"/proc/{keeper}/fd")
            files = {os.readlink(f"/proc/{keeper}/fd/{n}"): f"/proc/{keeper}/fd/{n}" for n in numbers}

            def named(rank, generation, kind):
                return next(path for name, path in files.items() if f"chorale-{rank}-{generation}-{kind} " in name)

            def step_of(rank, generation):
                return self.kept_step(named(rank, generation, "info"))

            common = set.intersection(*({step_of(rank, g) for g in (0, 1)} for rank in range(4)))
            self.damaged = max(common)
            generation = [step_of(2, g) for g in (0, 1)].index(self.damaged)
            with open(named(2, generation, "image"), "r+b") as image:
                image.seek(-8, os.SEEK_END)
                byte = image.read(1)
                image.seek(-8, os.SEEK_END)
                image.write(bytes([byte[0] ^ 1]))

        self.die_while_the_supervisor_is_stopped(job, damage)
        self.require_complete(job, interval=2)
        self.assertIn(f"skipping the snapshot of step {self.damaged}: a snapshot is damaged", self.said())
        self.assertEqual([event["source"] for event in self.events()][1], "memory", self.events())

    @trial
    def test_a_rank_that_dies_inside_a_snapshot_leaves_the_older_one(self):
        job = self.launch("--quarantine", "60s", interval=1000)
        self.until_step(6, job)
        heads = [os.open(head, os.O_RDONLY) for head in self.heads_of_snapshots(job, 1)]
        victim, caught = ranks_of(job)[1], False
        while not caught and job.poll() is None:
            if any(os.pread(head, 8, 8) == b"\xff" * 8 for head in heads):  # step −1: it is being written
                os.kill(victim, signal.SIGSTOP)
                caught = any(os.pread(head, 8, 8) == b"\xff" * 8 for head in heads)
                os.kill(victim, signal.SIGKILL if caught else signal.SIGCONT)
        for head in heads:
            os.close(head)
        self.assertTrue(caught, self.said())
        self.require_complete(job, interval=1)
        died = [event for event in self.events() if event["kind"] == "died"]
        self.assertEqual([(event["rank"], event["source"]) for event in died], [(1, "memory")], self.events())

    @trial
    def test_a_rank_that_dies_while_the_last_checkpoint_is_saved(self):
        job = self.launch("--quarantine", "60s", interval=1000)
        self.until_step(1, job)
        victim, partial = ranks_of(job)[0], f"{self.run_folder()}/checkpoints/step-{steps}.partial"
        while not os.path.exists(partial) and job.poll() is None:
            pass
        os.kill(victim, signal.SIGKILL)
        self.require_complete(job)
        died = [event for event in self.events() if event["kind"] == "died"]
        self.assertEqual([event["step"] for event in died], [steps], self.events())

    @trial
    def test_too_little_memory_for_snapshots_is_refused_before_the_first_step(self):
        namespace = mount_namespace()
        if not namespace:
            self.skipTest("no mount namespaces here")
        with open("/proc/meminfo") as real, open(f"{self.folder.name}/meminfo", "w") as fake:
            fake.write(re.sub(r"(?m)^(MemAvailable:) +\d+", r"\1 9000", real.read()))
        program = [*model, "--memory-limit", "0"]
        job = self.launch(program=program, before=[
            *namespace, "bash", "-c", 'mount --bind "$1" /proc/meminfo && shift && exec "$@"', "bash", fake.name])
        finish(job)
        self.assertEqual(job.returncode, 2, self.said())
        self.assertRegex(self.said(), r"error: there is no room for snapshots\n  two snapshots of the ranks on \S+ need "
                                      r"\S+ MiB; 8.8 MiB is available\n  use --snapshot-interval 0")
        self.assertEqual(self.step(), 0)

    @trial
    def test_without_its_keeper_the_run_goes_on_from_the_disk(self):
        job = self.launch("--quarantine", "60s", interval=2)
        self.until_step(6, job)
        self.die_while_the_supervisor_is_stopped(job, lambda: os.kill(self.keeper_of(job), signal.SIGKILL))
        self.require_complete(job, interval=2)
        self.assertIn("the keeper of snapshots is dead: the run goes on from its newest checkpoint", self.said())
        self.assertEqual([event["source"] for event in self.events()][1], "disk", self.events())

    @trial
    def test_ranks_give_their_snapshots_to_a_new_keeper(self):
        job = self.launch("--quarantine", "60s", interval=1000)
        self.until_step(4, job)
        os.kill(self.keeper_of(job), signal.SIGKILL)
        self.until_step(8, job)
        self.kill_a_rank(job, 1)
        self.require_complete(job)
        died = [event for event in self.events() if event["kind"] == "died"]
        self.assertEqual([event["source"] for event in died], ["memory"], self.events())

    @trial
    def test_a_launcher_that_lies_is_not_believed(self):
        words = [*launch, "--enable-recovery"]
        if start([*words, "-n", "1", "true"]).returncode != 0:
            self.skipTest("this launcher has no --enable-recovery")
        job = self.launch("--quarantine", "60s", MPIRUN=" ".join(words))
        self.until_step(5, job)
        self.kill_a_rank(job, 1)
        self.require_complete(job)

    @trial
    def test_sigterm_saves_and_ends_with_code_0(self):
        job = self.launch(interval=1000)
        self.until_step(4, job)
        job.send_signal(signal.SIGTERM)
        finish(job)
        self.assertEqual(job.returncode, 0, self.said())
        done = self.step()
        self.assertTrue(os.path.exists(f"{self.run_folder()}/checkpoints/step-{done}/manifest.json"), self.said())
        self.assertEqual(self.events()[-1]["kind"], "stopped")
        saved = f"{self.run_folder()}/checkpoints"
        again = ranks(2, chorale, "train", *model, "--layout", "dp2", "--load", saved, "--run-dir", self.folder.name)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(self.weights(f"{self.folder.name}/latest"), self.undisturbed())

    @trial
    def test_sigterm_while_the_ranks_start_ends_them_well(self):
        for seconds in (0, 0.1, 0.3, 0.5, 0.7):
            with self.subTest(seconds=seconds):
                self.setUp()
                job = self.launch()
                until(lambda: self.run_folder() != self.folder.name or job.poll() is not None, job)
                time.sleep(seconds)
                job.send_signal(signal.SIGTERM)
                finish(job)
                self.assertEqual(job.returncode, 0, self.said())
                self.assertEqual(self.events()[-1]["kind"], "stopped")

    @trial
    def test_a_killed_supervisor_leaves_nothing(self):
        before = set(os.listdir("/dev/shm"))
        job = self.launch()
        self.until_step(3, job)
        running = list(ranks_of(job).values())
        os.kill(job.pid, signal.SIGKILL)
        left = None
        for _ in range(600):  # the ranks end within seconds; each look takes 0.1 s
            left = [pid for pid in running if os.path.exists(f"/proc/{pid}")] + sorted(set(os.listdir("/dev/shm")) - before)
            if not left:
                break
            time.sleep(0.1)
        self.assertEqual(left, [])
        job.wait()

    @trial
    def test_same_layout_waits_for_its_slots(self):
        job = self.launch("--quarantine", "2s", "--same-layout")
        self.until_step(3, job)
        self.kill_a_rank(job)
        self.require_complete(job)
        self.assertEqual({event["to_layout"] for event in self.events()} - {""}, {"dp2.tp2.z1"})
        self.assertIn("launch waits: dp2.tp2.z1 needs more than 3 slots (--same-layout)", self.said())


class GivesUp(LaunchCase):
    def starts(self):
        return glob.glob(f"{self.run_folder()}/*-train-*/metrics.jsonl")

    @trial
    def test_a_step_that_always_kills_ends_the_launch(self):
        slow = ["480" if word == "24" else word for word in model]  # so that each kill is in the same step
        job = self.launch("--quarantine", "0s", program=slow)
        for number in (1, 2, 3):
            until(lambda number=number: len(self.starts()) >= number or job.poll() is not None, job)
            until(lambda number=number: number > 1 or self.step() >= 1 or job.poll() is not None, job)
            time.sleep(0.5)
            self.kill_a_rank(job, 2)
        finish(job)
        self.assertEqual(job.returncode, 4, self.said()[-4000:])
        self.assertIn("error: the launch gives up\n  step 2 has killed rank 2 3 times\n", self.said())
        self.assertEqual(self.events()[-1]["kind"], "gave_up")

    @trial
    def test_codes_of_the_launcher_without_a_verdict(self):
        for code, starts, wanted in ((2, 1, 2), (3, 1, 3), (1, 2, 1)):
            with self.subTest(code=code):
                self.setUp()
                script = f"{self.folder.name}/fails"
                with open(script, "w") as file:
                    file.write(f'#!/bin/sh\necho started >> "$0.count"\nexit {code}\n')
                os.chmod(script, 0o755)
                job = self.launch(MPIRUN=script)
                finish(job)
                self.assertEqual(job.returncode, wanted, self.said())
                with open(f"{script}.count") as count:
                    self.assertEqual(len(count.readlines()), starts, self.said())


class Requests(LaunchCase):
    def test_resize_changes_the_number_of_ranks(self):
        job = self.launch()
        self.until_step(3, job)
        refused = start([chorale, "resize", "9", self.run_folder()])
        self.assertEqual(refused.returncode, 2, refused.stdout + refused.stderr)
        self.assertIn("it has 4 slots", refused.stderr)
        for number in ("2", "4"):
            before = len(self.events())
            asked = start([chorale, "resize", number, self.run_folder()])
            self.assertEqual(asked.returncode, 0, asked.stderr)
            self.assertIn("ok: the run saves, and goes on on dp", asked.stdout)
            until(lambda: len(self.events()) > before or job.poll() is not None, job)
        self.require_complete(job)
        resized = [event for event in self.events() if event["kind"] == "resized"]
        self.assertEqual([event["lost_steps"] for event in resized], [0, 0], self.events())
        self.assertEqual(resized[-1]["to_layout"], "dp2.tp2.z1")
        nobody = start([chorale, "resize", "2", self.run_folder()])
        self.assertEqual(nobody.returncode, 2)
        self.assertIn("no supervisor answers for this run", nobody.stderr)

    def test_fast_numerics_say_that_bits_differ(self):
        program = [word.replace("exact", "fast") for word in model]
        job = self.launch("--quarantine", "60s", program=program)
        self.until_step(3, job)
        self.kill_a_rank(job)
        finish(job)
        self.assertEqual(job.returncode, 0, self.said())
        self.assertIn("the later steps are not bit-identical to those on dp2.tp2.z1: the numerics are fast", self.said())

    def test_wrong_requests_are_refused_before_anything_starts(self):
        train = ["train", "--preset", "tiny"]
        for words, part in (
                (["--ranks", "2"], "launch needs a program to start"),
                (["--ranks", "2", "--", "bench"], "launch starts training runs only"),
                (["--", *train], "launch needs a number of ranks"),
                (["--ranks", "2", "--", *train, "--no-save"], "a launch needs checkpoints"),
                (["--ranks", "2", "--", *train, "--lr", "x"], "lr"),
                (["--ranks", "3", "--", *train, "--layout", "dp2"], "dp2"),
                (["--ranks", "2", "--min-ranks", "3", "--", *train], "--min-ranks is larger"),
                (["--hosts", "n0:x", "--", *train], "a host cannot be read"),
                (["--ranks", "2", "--run-dir", "/proc/no", "--", *train], "/proc/no")):
            with self.subTest(words=words):
                refused = start([chorale, "launch", *words], folder=None, TMPDIR=self.folder.name)
                self.assertEqual(refused.returncode, 2, refused.stdout + refused.stderr)
                self.assertIn(part, refused.stderr)
                self.assertGreaterEqual(len(re.findall(r"\n  ", refused.stderr)), 2, refused.stderr)


if __name__ == "__main__":
    unittest.main()
